"""Checkpoints with real git and real files."""

import asyncio
import contextlib
import fcntl
import itertools
import json
import logging
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings

from frontdesk import errors
from frontdesk.contracts.snapshots import Snapshots
from frontdesk.model.checkpoints import ChangeKind, Checkpoint, FileChange, Limits, Skip, SkipReason
from frontdesk.snapshots import CheckpointManager
from frontdesk.testing.clock import SettableClock
from tests import counts, powerless
from tests.integration import trees
from tests.integration.trees import look

FEW = counts.count(10, 200)
OTHER_ID = "0123456789ab"


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """A working directory with something in it."""
    folder = tmp_path / "work"
    (folder / "src").mkdir(parents=True)
    (folder / "src" / "main.py").write_text("print('one')\n")
    (folder / "run.sh").write_text("#!/bin/sh\n")
    (folder / "run.sh").chmod(0o755)
    (folder / "latest").symlink_to("src/main.py")
    return folder


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "home" / "checkpoints"


@pytest.fixture
def manager(root: Path) -> CheckpointManager:
    return CheckpointManager(root=root)


async def checkpoint(manager: CheckpointManager, work: Path, label: str = "test") -> Checkpoint:
    made = await manager.create_checkpoint(work, label)
    assert made
    return made


def git(folder: Path, *args: str) -> str:
    """git as a user runs it in a folder of theirs."""
    who = ["-c", "user.name=U", "-c", "user.email=u@example.org"]
    done = subprocess.run(["git", *who, *args], cwd=folder, check=True, capture_output=True, text=True)
    return done.stdout


def store_of(root: Path) -> Path:
    (store,) = root.iterdir()
    return store


def mix_stores(root: Path) -> None:
    """Put everything that is in one store into the others."""
    for one, other in itertools.permutations(root.iterdir(), 2):
        shutil.copytree(one / "git", other / "git", dirs_exist_ok=True)


def bytes_in(folder: Path) -> int:
    return sum(path.lstat().st_size for path in folder.rglob("*"))


def is_private(path: Path) -> bool:
    return not path.lstat().st_mode & 0o077


# Taking


async def test_checkpoint_is_linked_to_its_session_and_turn(work: Path, root: Path) -> None:
    clock = SettableClock()
    manager = CheckpointManager(root=root, clock=clock)
    made = await manager.create_checkpoint(work, "marathon-s1", session_id="s1", turn_id="t7")
    assert made
    assert (made.label, made.session_id, made.turn_id) == ("marathon-s1", "s1", "t7")
    assert (made.directory, made.created_at, made.number) == (str(work), clock.now(), 1)
    assert (made.files, made.bytes, made.skipped) == (3, 13 + 10 + 11, ())
    assert await CheckpointManager(root=root).list_checkpoints(work) == [made]


async def test_nothing_changed_gives_no_checkpoint(work: Path, manager: CheckpointManager) -> None:
    await checkpoint(manager, work)
    assert await manager.create_checkpoint(work, "again") is None
    assert len(await manager.list_checkpoints(work)) == 1


async def test_nothing_changed_is_seen_without_the_cache_too(
    work: Path, manager: CheckpointManager, root: Path
) -> None:
    await checkpoint(manager, work)
    (store_of(root) / "cache").unlink()
    assert await manager.create_checkpoint(work, "again") is None


@pytest.mark.parametrize(
    "change",
    [
        lambda work: (work / "run.sh").chmod(0o750),
        lambda work: (work / "empty").mkdir(),
        lambda work: (work / "src").chmod(0o700),
        lambda work: (work / "run.sh").write_text("#!/bin/zh\n"),
        lambda work: (work / "run.sh").rename(work / "ran.sh"),
        lambda work: (work / "latest").unlink(),
    ],
    ids=["permissions", "empty folder", "folder permissions", "same size", "move", "removal"],
)
async def test_every_change_is_worth_a_checkpoint(
    work: Path, manager: CheckpointManager, change: Any
) -> None:
    first = await checkpoint(manager, work)
    before = look(work)
    change(work)
    after = look(work)
    second = await checkpoint(manager, work)
    await manager.restore(work, first.id)
    assert look(work) == before
    await manager.restore(work, second.id)
    assert look(work) == after


async def test_checkpoint_of_a_small_change_stores_only_that(
    work: Path, manager: CheckpointManager, root: Path
) -> None:
    (work / "large").write_bytes(os.urandom(1_000_000))
    await checkpoint(manager, work)
    before = bytes_in(root)
    (work / "run.sh").write_text("changed")
    await checkpoint(manager, work)
    assert bytes_in(root) < before + 50_000


async def test_empty_directory_has_a_checkpoint(tmp_path: Path, manager: CheckpointManager) -> None:
    (tmp_path / "empty").mkdir()
    made = await checkpoint(manager, tmp_path / "empty")
    (tmp_path / "empty" / "x").write_text("x")
    await manager.restore(tmp_path / "empty", made.id)
    assert look(tmp_path / "empty") == {}


async def test_directory_may_be_named_through_a_link(
    work: Path, tmp_path: Path, manager: CheckpointManager
) -> None:
    made = await checkpoint(manager, work)
    (tmp_path / "alias").symlink_to(work)
    assert await manager.find(tmp_path / "alias", made.id) == made


async def test_label_of_a_stranger_is_one_short_line(work: Path, manager: CheckpointManager) -> None:
    made = await manager.create_checkpoint(work, "a\nb\x00c\x1b[31m" + "d" * 1000)
    assert made
    assert made.label.startswith("a b c [31m")
    assert len(made.label) == 240


async def test_manager_keeps_the_contract_of_snapshots(manager: CheckpointManager) -> None:
    snapshots: Snapshots = manager
    assert await snapshots.list_checkpoints(Path("nowhere")) == []


async def test_large_file_is_kept_whole_when_the_limit_allows(work: Path, manager: CheckpointManager) -> None:
    data = os.urandom(3_000_000)
    (work / "large").write_bytes(data)
    made = await checkpoint(manager, work)
    (work / "large").write_bytes(b"")
    await manager.restore(work, made.id)
    assert (work / "large").read_bytes() == data


# The user's own repository


async def test_users_repository_and_index_stay_untouched(work: Path, manager: CheckpointManager) -> None:
    git(work, "init", "-q")
    git(work, "add", "run.sh")
    git(work, "commit", "-q", "-m", "mine")
    (work / "run.sh").write_text("changed")
    git(work, "add", "run.sh")
    (work / "run.sh").write_text("changed again")
    before = look(work / ".git")
    made = await checkpoint(manager, work)
    (work / "run.sh").write_text("later")
    await manager.diff(work, made.id)
    await manager.restore(work, made.id)
    assert look(work / ".git") == before
    assert git(work, "status", "--porcelain").splitlines() == ["MM run.sh", "?? latest", "?? src/"]


async def test_files_of_a_nested_repository_are_kept_without_its_git(
    work: Path, manager: CheckpointManager
) -> None:
    nested = work / "vendor" / "lib"
    nested.mkdir(parents=True)
    git(nested, "init", "-q")
    (nested / "code.c").write_text("one")
    git(nested, "add", ".")
    git(nested, "commit", "-q", "-m", "x")
    made = await checkpoint(manager, work)
    assert made.skipped == (Skip("vendor/lib/.git", SkipReason.REPOSITORY),)
    (nested / "code.c").write_text("two")
    (nested / "more.c").write_text("three")
    before = look(nested / ".git")
    await manager.restore(work, made.id)
    assert (nested / "code.c").read_text() == "one"
    assert not (nested / "more.c").exists()
    assert look(nested / ".git") == before


async def test_users_git_settings_and_attributes_do_not_change_a_byte(
    work: Path, manager: CheckpointManager, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "person"
    home.mkdir()
    (home / ".gitconfig").write_text(
        "[core]\n\tautocrlf = true\n\thooksPath = hooks\n"
        '[filter "up"]\n\tclean = tr a-z A-Z\n\trequired = true\n'
    )
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "elsewhere"))
    monkeypatch.setenv("GIT_INDEX_FILE", str(tmp_path / "index"))
    monkeypatch.setenv("GIT_WORK_TREE", str(tmp_path))
    monkeypatch.setenv("GIT_EXTERNAL_DIFF", "false")
    (work / ".gitattributes").write_text("* filter=up text eol=crlf ident working-tree-encoding=UTF-16\n")
    (work / "text").write_bytes(b"a\r\nb\n$Id$\n")
    before = look(work)
    made = await checkpoint(manager, work)
    (work / "text").write_bytes(b"other\n")
    assert "+other" in (await manager.diff(work, made.id)).text
    await manager.restore(work, made.id)
    assert look(work) == before
    assert not (tmp_path / "elsewhere").exists()
    assert not (tmp_path / "index").exists()


# Leaving out


async def test_generated_folders_are_left_out_and_the_skip_is_visible(
    work: Path, manager: CheckpointManager
) -> None:
    for name in ("node_modules", ".venv", "src/__pycache__", "target", "env"):
        (work / name).mkdir()
        (work / name / "x").write_text("x")
    (work / "target" / "CACHEDIR.TAG").write_text("Signature: 8a477f597d28d172789f06886806bc55\n")
    (work / "env" / "pyvenv.cfg").write_text("")
    os.mkfifo(work / "pipe")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(work / "socket"))
    made = await checkpoint(manager, work)
    assert {skip.path: skip.reason for skip in made.skipped} == {
        ".venv": SkipReason.GENERATED,
        "env": SkipReason.GENERATED,
        "node_modules": SkipReason.GENERATED,
        "pipe": SkipReason.SPECIAL,
        "socket": SkipReason.SPECIAL,
        "src/__pycache__": SkipReason.GENERATED,
        "target": SkipReason.GENERATED,
    }
    assert made.skipped_count == 7
    (work / "src" / "main.py").write_text("changed")
    (work / "node_modules" / "y").write_text("y")
    present = look(work)
    await manager.restore(work, made.id)
    assert (work / "src" / "main.py").read_text() == "print('one')\n"
    assert look(work).keys() == present.keys()


async def test_file_over_the_size_is_left_out_and_never_deleted(work: Path, root: Path) -> None:
    manager = CheckpointManager(root=root, limits=Limits(max_file_bytes=100))
    (work / "big").write_bytes(bytes(101))
    made = await checkpoint(manager, work)
    assert made.skipped == (Skip("big", SkipReason.LARGE),)
    (work / "big").write_bytes(b"small now")
    (work / "created").write_bytes(b"")
    await manager.restore(work, made.id)
    assert (work / "big").read_bytes() == b"small now"
    assert not (work / "created").exists()


async def test_file_that_grew_over_the_size_is_restored_and_comes_back(work: Path, root: Path) -> None:
    manager = CheckpointManager(root=root, limits=Limits(max_file_bytes=100))
    (work / "log").write_bytes(b"short")
    made = await checkpoint(manager, work)
    (work / "log").write_bytes(bytes(5000))
    undo = (await manager.restore(work, made.id)).safety
    assert (work / "log").read_bytes() == b"short"
    await manager.restore(work, undo.id)
    assert (work / "log").read_bytes() == bytes(5000)


async def test_folder_that_became_generated_since_is_restored(work: Path, manager: CheckpointManager) -> None:
    (work / "out").mkdir()
    (work / "out" / "kept").write_text("one")
    made = await checkpoint(manager, work)
    (work / "out" / "pyvenv.cfg").write_text("")
    (work / "out" / "kept").unlink()
    before = look(work)
    undo = (await manager.restore(work, made.id)).safety
    assert look(work / "out") == {"kept": ("file", 0o644, b"one")}
    await manager.restore(work, undo.id)
    assert look(work) == before


async def test_of_many_skipped_paths_the_first_are_shown_and_all_are_counted(work: Path, root: Path) -> None:
    manager = CheckpointManager(root=root, limits=Limits(max_file_bytes=0))
    for number in range(250):
        (work / f"{number:03}").write_text("x")
    made = await checkpoint(manager, work)
    assert (len(made.skipped), made.skipped_count) == (200, 252)
    await manager.restore(work, made.id)
    assert (work / "249").exists()


async def test_store_inside_the_directory_is_left_out(tmp_path: Path, work: Path) -> None:
    manager = CheckpointManager(root=work / "checkpoints")
    await checkpoint(manager, work)
    made = (await manager.list_checkpoints(work))[0]
    assert await manager.create_checkpoint(work, "again") is None
    (work / "new").write_text("new")
    second = await checkpoint(manager, work)
    assert Skip("checkpoints", SkipReason.PRIVATE) in second.skipped
    await manager.restore(work, made.id)
    assert len(await manager.list_checkpoints(work)) == 2


async def test_private_folders_are_part_of_no_checkpoint(work: Path, root: Path) -> None:
    (work / ".frontdesk").mkdir()
    (work / ".frontdesk" / "state.db").write_text("secret")
    manager = CheckpointManager(root=root, private=[work / ".frontdesk"])
    made = await checkpoint(manager, work)
    assert made.skipped == (Skip(".frontdesk", SkipReason.PRIVATE),)
    (work / ".frontdesk" / "more").write_text("secret")
    await manager.restore(work, made.id)
    assert (work / ".frontdesk" / "more").exists()
    with pytest.raises(errors.UnusableDirectory):
        await manager.create_checkpoint(work / ".frontdesk", "x")


async def test_usual_home_of_frontdesk_is_private(
    work: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(work))
    manager = CheckpointManager()
    (work / ".frontdesk").mkdir()
    made = await checkpoint(manager, work)
    assert made.skipped == (Skip(".frontdesk", SkipReason.PRIVATE),)
    assert (work / ".frontdesk" / "checkpoints").is_dir()


async def test_folders_too_deep_are_left_out(work: Path, root: Path) -> None:
    (work / "a" / "b" / "c").mkdir(parents=True)
    made = await checkpoint(CheckpointManager(root=root, limits=Limits(max_depth=2)), work)
    assert made.skipped == (Skip("a/b/c", SkipReason.DEEP),)


# Refusing


@pytest.mark.parametrize(
    ("limits", "why"),
    [
        (Limits(max_files=3), "more than 3 files"),
        (Limits(max_total_bytes=20), "more than 20 bytes"),
    ],
)
async def test_directory_past_the_limits_is_refused(work: Path, root: Path, limits: Limits, why: str) -> None:
    manager = CheckpointManager(root=root, limits=limits)
    with pytest.raises(errors.DirectoryTooLarge, match=why):
        await manager.create_checkpoint(work, "x")
    assert await manager.list_checkpoints(work) == []


async def test_directory_that_cannot_be_one_is_refused(
    work: Path, manager: CheckpointManager, root: Path
) -> None:
    for directory in (work / "nowhere", work / "run.sh", "/", "a\0b", root, root / "inside"):
        with pytest.raises(errors.UnusableDirectory):
            await manager.create_checkpoint(directory, "x")
    assert not (work / "nowhere").exists()


@pytest.mark.parametrize("odd", ["--foo", "", "HEAD", "../../x", OTHER_ID, "a" * 1000, None])
async def test_unknown_id_is_refused(work: Path, manager: CheckpointManager, odd: Any) -> None:
    await checkpoint(manager, work)
    before = look(work)
    assert await manager.find(work, odd) is None
    for call in (manager.restore, manager.diff):
        with pytest.raises(errors.UnknownCheckpoint):
            await call(work, odd)
    assert look(work) == before
    assert len(await manager.list_checkpoints(work)) == 1


async def test_checkpoint_of_another_directory_is_refused(
    work: Path, tmp_path: Path, manager: CheckpointManager
) -> None:
    other = tmp_path / "other"
    shutil.copytree(work, other, symlinks=True)
    made = await checkpoint(manager, work)
    (other / "mine").write_text("mine")
    with pytest.raises(errors.ForeignCheckpoint, match=str(work)):
        await manager.restore(other, made.id)
    await checkpoint(manager, other)
    with pytest.raises(errors.ForeignCheckpoint):
        await manager.diff(other, made.id)
    assert await manager.find(other, made.id) is None
    assert (other / "mine").exists()


async def test_store_that_was_moved_to_another_directory_is_refused(
    work: Path, tmp_path: Path, manager: CheckpointManager, root: Path
) -> None:
    made = await checkpoint(manager, work)
    other = tmp_path / "other"
    other.mkdir()
    await checkpoint(manager, other)
    mix_stores(root)
    with pytest.raises(errors.ForeignCheckpoint):
        await manager.restore(other, made.id)
    assert look(other) == {}


@pytest.mark.parametrize("path", ["../x", "src/../../x", "/etc/passwd", "", ".", "a\0b", "..", 5, b"a"])
async def test_path_that_leads_out_is_refused(work: Path, manager: CheckpointManager, path: Any) -> None:
    made = await checkpoint(manager, work)
    with pytest.raises(errors.UnsafePath):
        await manager.restore(work, made.id, path)


async def test_parent_that_became_a_link_is_not_followed(
    work: Path, tmp_path: Path, manager: CheckpointManager
) -> None:
    made = await checkpoint(manager, work)
    outside = tmp_path / "outside"
    (work / "src").rename(outside)
    (outside / "main.py").write_text("outside")
    (work / "src").symlink_to(outside)
    with pytest.raises(errors.RestoreBlocked):
        await manager.restore(work, made.id, "src/main.py")
    await manager.restore(work, made.id)
    assert (work / "src" / "main.py").read_text() == "print('one')\n"
    assert not (work / "src").is_symlink()
    assert (outside / "main.py").read_text() == "outside"


async def test_git_that_is_not_there_is_named(work: Path, root: Path) -> None:
    manager = CheckpointManager(root=root, git="git-of-nobody")
    with pytest.raises(errors.GitMissing, match="Install git"):
        await manager.create_checkpoint(work, "x")


async def test_words_of_a_failing_git_are_in_the_error(work: Path, root: Path, tmp_path: Path) -> None:
    manager = CheckpointManager(root=root, git=script(tmp_path, "echo 'fatal: no luck' >&2; exit 128"))
    with pytest.raises(errors.GitFailed, match="init failed: fatal: no luck"):
        await manager.create_checkpoint(work, "x")


async def test_git_that_hangs_is_ended(work: Path, root: Path, tmp_path: Path) -> None:
    program = script(tmp_path, f"sleep 1000 & echo $! > {tmp_path}/pid; wait")
    manager = CheckpointManager(root=root, git=program, limits=Limits(git_seconds=0.5))
    with pytest.raises(errors.GitFailed, match=r"more than 0\.5 seconds"):
        await manager.create_checkpoint(work, "x")
    assert await CheckpointManager(root=root).create_checkpoint(work, "x")


# Going back


@settings(max_examples=FEW)
@given(trees.TREES, trees.TREES)
def test_restore_is_exact_and_undoable(before: dict[str, Any], after: dict[str, Any]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(go_and_return(Path(folder), before, after))


async def go_and_return(folder: Path, before: dict[str, Any], after: dict[str, Any]) -> None:
    work = folder / "work"
    work.mkdir()
    manager = CheckpointManager(root=folder / "checkpoints")
    trees.plant(work, before)
    first = look(work)
    made = await checkpoint(manager, work)
    trees.clear(work)
    trees.plant(work, after)
    second = look(work)
    restored = await manager.restore(work, made.id)
    assert look(work) == first
    again = await manager.restore(work, restored.safety.id)
    assert look(work) == second
    await manager.restore(work, again.safety.id)
    assert look(work) == first
    trees.clear(work)


async def test_restore_says_what_it_did(work: Path, manager: CheckpointManager) -> None:
    made = await checkpoint(manager, work)
    (work / "src" / "main.py").write_text("two")
    (work / "src" / "new.py").write_text("new")
    restored = await manager.restore(work, made.id, session_id="s1", turn_id="t2")
    assert (restored.written, restored.removed) == (("src/main.py",), ("src/new.py",))
    assert restored.checkpoint == made
    assert restored.safety.before_restore == made.id
    assert (restored.safety.session_id, restored.safety.turn_id) == ("s1", "t2")
    assert [each.id for each in await manager.list_checkpoints(work)] == [restored.safety.id, made.id]


async def test_unchanged_files_are_not_touched_by_a_restore(work: Path, manager: CheckpointManager) -> None:
    made = await checkpoint(manager, work)
    (work / "src" / "main.py").write_text("two")
    before = (work / "run.sh").stat()
    await manager.restore(work, made.id)
    assert (work / "run.sh").stat() == before


async def test_restore_right_after_a_checkpoint_needs_no_other(
    work: Path, manager: CheckpointManager
) -> None:
    first = await checkpoint(manager, work)
    (work / "new").write_text("new")
    second = await checkpoint(manager, work)
    assert (await manager.restore(work, first.id)).safety == second
    assert len(await manager.list_checkpoints(work)) == 2


async def test_one_file_is_restored_alone(work: Path, manager: CheckpointManager) -> None:
    made = await checkpoint(manager, work)
    shutil.rmtree(work / "src")
    (work / "run.sh").write_text("changed")
    (work / "new").write_text("new")
    restored = await manager.restore(work, made.id, "./src//main.py")
    assert restored.written == ("src/main.py",)
    assert (work / "src" / "main.py").read_text() == "print('one')\n"
    assert (work / "run.sh").read_text() == "changed"
    assert (work / "new").exists()


async def test_path_that_the_checkpoint_does_not_hold_is_refused(
    work: Path, manager: CheckpointManager
) -> None:
    made = await checkpoint(manager, work)
    (work / "new").write_text("new")
    with pytest.raises(errors.PathNotKept):
        await manager.restore(work, made.id, "new")
    assert (work / "new").exists()


async def test_deleted_directory_is_made_again(work: Path, manager: CheckpointManager) -> None:
    before = look(work)
    made = await checkpoint(manager, work)
    shutil.rmtree(work)
    assert [each.id for each in await manager.list_checkpoints(work)] == [made.id]
    await manager.restore(work, made.id)
    assert look(work) == before


async def test_file_shared_by_a_hard_link_is_not_written_through(
    work: Path, tmp_path: Path, manager: CheckpointManager
) -> None:
    made = await checkpoint(manager, work)
    (tmp_path / "outside").write_text("outside")
    (work / "run.sh").unlink()
    (work / "run.sh").hardlink_to(tmp_path / "outside")
    (work / "second").hardlink_to(tmp_path / "outside")
    await manager.restore(work, made.id)
    assert (tmp_path / "outside").read_text() == "outside"
    assert (work / "run.sh").read_text() == "#!/bin/sh\n"


async def test_what_no_checkpoint_keeps_blocks_a_restore_before_anything_is_changed(
    work: Path, manager: CheckpointManager
) -> None:
    made = await checkpoint(manager, work)
    (work / "run.sh").unlink()
    (work / "run.sh" / "node_modules").mkdir(parents=True)
    (work / "latest").unlink()
    before = look(work)
    with pytest.raises(errors.RestoreBlocked, match=r"run\.sh"):
        await manager.restore(work, made.id)
    assert look(work) == before


async def test_damaged_checkpoint_is_refused_before_anything_is_changed(
    work: Path, manager: CheckpointManager, root: Path
) -> None:
    made = await checkpoint(manager, work)
    shutil.rmtree(work / "src")
    await checkpoint(manager, work)
    before = look(work)
    for pack in sorted((store_of(root) / "git" / "objects" / "pack").glob("*.pack")):
        pack.chmod(0o600)
        data = bytearray(pack.read_bytes())
        data[12:-20] = bytes(len(data) - 32)
        pack.write_bytes(data)
    with pytest.raises(errors.CheckpointDamaged):
        await manager.restore(work, made.id)
    assert look(work) == before


async def test_store_that_lost_contents_gets_them_again(
    work: Path, manager: CheckpointManager, root: Path, caplog: pytest.LogCaptureFixture
) -> None:
    await checkpoint(manager, work)
    for pack in (store_of(root) / "git" / "objects" / "pack").iterdir():
        pack.unlink()
    before = look(work)
    (work / "new").write_text("new")
    with caplog.at_level(logging.WARNING, "frontdesk"):
        made = await checkpoint(manager, work)
    assert "checkpoint_store_incomplete" in caplog.text
    (work / "new").unlink()
    (work / "run.sh").unlink()
    await manager.restore(work, made.id)
    (work / "new").unlink()
    assert look(work) == before


async def test_read_only_folders_are_restored_by_their_owner() -> None:
    with powerless_folder() as work:
        await restore_read_only(work)
        for path in (work / "sealed" / "inner", work / "sealed", work):
            path.chmod(0o755)


async def restore_read_only(work: Path) -> None:
    sealed = work / "sealed"
    (sealed / "inner").mkdir(parents=True)
    (sealed / "file").write_text("one")
    (sealed / "inner" / "file").write_text("two")
    for path in (sealed / "file", sealed / "inner", sealed, work):
        path.chmod(0o555)
    before = look(work)
    manager = CheckpointManager(root=work.parent / "checkpoints")
    made = await checkpoint(manager, work)
    for path in (sealed, sealed / "inner"):
        path.chmod(0o755)
    (sealed / "file").unlink()
    (sealed / "inner" / "file").write_text("three")
    (sealed / "inner" / "new").write_text("new")
    (sealed / "inner").chmod(0o500)
    changed = look(work)
    undo = (await manager.restore(work, made.id)).safety
    assert look(work) == before
    await manager.restore(work, undo.id)
    assert look(work) == changed


async def test_unreadable_file_is_left_out_and_blocks_its_own_restore() -> None:
    with powerless_folder() as work:
        manager = CheckpointManager(root=work.parent / "checkpoints")
        (work / "secret").write_text("one")
        made = await checkpoint(manager, work)
        (work / "secret").chmod(0)
        second = await checkpoint(manager, work)
        assert second.skipped == (Skip("secret", SkipReason.UNREADABLE),)
        with pytest.raises(errors.RestoreBlocked, match="unreadable"):
            await manager.restore(work, made.id)
        (work / "secret").chmod(0o600)
        await manager.restore(work, second.id)
        assert (work / "secret").read_text() == "one"


@contextlib.contextmanager
def powerless_folder() -> Iterator[Path]:
    """A working directory of somebody whom permissions stop."""
    with powerless.open_folder() as folder, powerless.powerless():
        (folder / "work").mkdir()
        yield folder / "work"


# Looking


async def test_diff_shows_what_has_happened_since(work: Path, manager: CheckpointManager) -> None:
    made = await checkpoint(manager, work)
    (work / "src" / "main.py").write_text("print('two')\n")
    (work / "run.sh").chmod(0o700)
    (work / "latest").unlink()
    (work / "empty").mkdir()
    diff = await manager.diff(work, made.id)
    assert diff.changes == (
        FileChange("empty", ChangeKind.ADDED),
        FileChange("latest", ChangeKind.REMOVED),
        FileChange("run.sh", ChangeKind.PERMISSIONS),
        FileChange("src/main.py", ChangeKind.CHANGED),
    )
    assert "-print('one')\n+print('two')\n" in diff.text
    assert str(diff) == diff.text
    assert not diff.truncated
    assert len(await manager.list_checkpoints(work)) == 1


async def test_diff_of_the_present_state_is_empty(work: Path, manager: CheckpointManager) -> None:
    made = await checkpoint(manager, work)
    diff = await manager.diff(work, made.id)
    assert (diff.changes, diff.text) == ((), "")


async def test_long_diff_is_cut(work: Path, root: Path) -> None:
    manager = CheckpointManager(root=root, limits=Limits(max_diff_bytes=1000))
    made = await checkpoint(manager, work)
    for number in range(1200):
        (work / f"{number}").write_text("line\n" * 100)
    diff = await manager.diff(work, made.id)
    assert diff.truncated
    assert len(diff.text) < 1100
    assert len(diff.changes) == 1000


# Dropping


async def test_oldest_are_dropped_past_the_maximum_and_the_others_stay_as_they_are(
    work: Path, root: Path
) -> None:
    manager = CheckpointManager(max_checkpoints=3, root=root)
    made = []
    for number in range(5):
        (work / "counter").write_text(str(number))
        made.append(await checkpoint(manager, work, str(number)))
    assert await manager.list_checkpoints(work) == made[:1:-1]
    assert await manager.find(work, made[0].id) is None
    with pytest.raises(errors.UnknownCheckpoint):
        await manager.restore(work, made[1].id)
    await manager.restore(work, made[2].id)
    assert (work / "counter").read_text() == "2"


async def test_restored_checkpoint_outlives_the_safety_checkpoint_of_its_restore(
    work: Path, root: Path
) -> None:
    manager = CheckpointManager(max_checkpoints=2, root=root)
    first = await checkpoint(manager, work)
    (work / "new").write_text("new")
    await checkpoint(manager, work)
    (work / "new").write_text("newer")
    restored = await manager.restore(work, first.id)
    assert [each.id for each in await manager.list_checkpoints(work)] == [restored.safety.id, first.id]


async def test_with_room_for_one_the_safety_checkpoint_is_kept(work: Path, root: Path) -> None:
    manager = CheckpointManager(max_checkpoints=1, root=root)
    first = await checkpoint(manager, work)
    (work / "new").write_text("new")
    before = look(work)
    restored = await manager.restore(work, first.id)
    assert await manager.list_checkpoints(work) == [restored.safety]
    await manager.restore(work, restored.safety.id)
    assert look(work) == before


async def test_pruning_frees_the_room_and_keeps_the_rest_whole(work: Path, root: Path) -> None:
    generous, strict = CheckpointManager(root=root), CheckpointManager(max_checkpoints=1, root=root)
    (work / "large").write_bytes(os.urandom(1_000_000))
    await checkpoint(generous, work)
    (work / "large").unlink()
    kept = await checkpoint(generous, work)
    before = look(work)
    assert await strict.prune(work) == 1
    assert bytes_in(root) < 500_000
    (work / "new").write_text("new")
    await checkpoint(generous, work)
    shutil.rmtree(work / "src")
    await generous.restore(work, kept.id)
    assert look(work) == before
    git(store_of(root) / "git", "fsck", "--strict")


async def test_contents_that_were_freed_are_stored_again_when_they_come_back(work: Path, root: Path) -> None:
    manager = CheckpointManager(max_checkpoints=1, root=root)
    (work / "data").write_text("freed")
    os.utime(work / "data", (1, 1))
    await checkpoint(manager, work)
    (work / "data").rename(root.parent / "data")
    await checkpoint(manager, work)
    assert await manager.prune(work) == 0
    (root.parent / "data").rename(work / "data")
    made = await checkpoint(manager, work)
    (work / "data").unlink()
    await manager.restore(work, made.id)
    assert (work / "data").read_text() == "freed"


async def test_many_checkpoints_do_not_leave_many_packs(work: Path, root: Path) -> None:
    manager = CheckpointManager(max_checkpoints=2, root=root)
    for number in range(40):
        (work / "counter").write_text(str(number))
        await checkpoint(manager, work)
    packs = list((store_of(root) / "git" / "objects" / "pack").glob("*.pack"))
    assert len(packs) < 33
    git(store_of(root) / "git", "fsck", "--strict")


async def test_pruning_a_directory_without_checkpoints_does_nothing(
    work: Path, manager: CheckpointManager, root: Path
) -> None:
    assert await manager.prune(work) == 0
    assert not look(root)


# Living together


async def test_store_is_for_its_owner_alone(work: Path, manager: CheckpointManager, root: Path) -> None:
    (work / ".env").write_text("TOKEN=secret")
    await checkpoint(manager, work)
    assert is_private(root)
    assert is_private(store_of(root))
    assert all(map(is_private, (store_of(root) / "git").rglob("*")))


async def test_calls_at_the_same_time_happen_one_after_the_other(work: Path, root: Path) -> None:
    managers = [CheckpointManager(root=root) for _ in range(3)]
    made = await asyncio.gather(*(manager.create_checkpoint(work, "x") for manager in managers * 3))
    assert len([each for each in made if each]) == 1
    numbers = [each.number for each in await managers[0].list_checkpoints(work)]
    assert numbers == [1]


async def test_store_that_stays_busy_is_named(work: Path, root: Path, manager: CheckpointManager) -> None:
    await checkpoint(manager, work)
    hurried = CheckpointManager(root=root, limits=Limits(lock_seconds=0.1))
    with (store_of(root) / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(errors.CheckpointsBusy, match=r"0\.1 seconds"):
            await hurried.create_checkpoint(work, "x")


async def test_cancelled_call_leaves_the_store_usable(work: Path, manager: CheckpointManager) -> None:
    for turns in range(0, 60, 3):
        task = asyncio.create_task(manager.create_checkpoint(work, "x"))
        for _ in range(turns):
            await asyncio.sleep(0)
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
    await manager.create_checkpoint(work, "x")
    assert len(await manager.list_checkpoints(work)) == 1


# Being killed

VICTIM = """
import asyncio, json, sys
from pathlib import Path
from frontdesk.snapshots import CheckpointManager
root, git, call, *args = json.loads(sys.argv[1])
manager = CheckpointManager(root=Path(root), git=git)
asyncio.run(getattr(manager, call)(*args))
"""
KILLER = """#!{python}
import os, signal, subprocess, sys
command, before, after = {command!r}, {before}, {after}
asked = next(word for word in sys.argv[1:] if word in {commands!r})
def kill():
    {act}
if asked != command:
    os.execvp("git", ["git", *sys.argv[1:]])
if after == 0:
    kill()
real = subprocess.Popen(["git", *sys.argv[1:]], stdin=subprocess.PIPE if before else None)
for line in sys.stdin.buffer if before else ():
    with open(__file__ + ".lines", "a+") as lines:
        lines.write("x")
        if lines.tell() > before:
            kill()
    real.stdin.write(line)
    real.stdin.flush()
if before:
    real.stdin.close()
real.wait()
if not before:
    kill()
"""
COMMANDS = ("init", "for-each-ref", "fast-import", "mktree", "commit-tree", "update-ref", "cat-file")


def script(folder: Path, text: str, interpreter: str = "#!/bin/sh\n") -> str:
    file = folder / "git-of-the-test"
    file.write_text(interpreter + text)
    file.chmod(0o755)
    return str(file)


KILL = "os.kill(os.getppid(), signal.SIGKILL)"


def killer(folder: Path, command: str, *, before: int = 0, after: int = 1, act: str = KILL) -> str:
    """A git that kills who called it: before a command, after it, or after so many lines to such commands."""
    facts = {"command": command, "before": before, "after": after, "act": act}
    text = KILLER.format(python=sys.executable, commands=COMMANDS, **facts)
    return script(folder, text, "")


async def be_killed(root: Path, git: str, call: str, *args: str) -> None:
    orders = json.dumps([str(root), git, call, *args])
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", VICTIM, orders)
    assert await asyncio.wait_for(process.wait(), 60) == -signal.SIGKILL


@pytest.mark.parametrize("after", [0, 1], ids=["before", "after"])
@pytest.mark.parametrize("command", COMMANDS[:-1])
async def test_killed_checkpoint_leaves_the_store_usable(
    work: Path, root: Path, tmp_path: Path, manager: CheckpointManager, command: str, after: int
) -> None:
    await be_killed(root, killer(tmp_path, command, after=after), "create_checkpoint", str(work), "x")
    await manager.create_checkpoint(work, "again")
    (made,) = await manager.list_checkpoints(work)
    before = look(work)
    shutil.rmtree(work / "src")
    await manager.restore(work, made.id)
    assert look(work) == before


@pytest.mark.parametrize("lines", [1, 7, *range(13, 24, counts.count(3, 1))])
async def test_killed_restore_can_be_repeated_or_undone(
    work: Path, root: Path, tmp_path: Path, manager: CheckpointManager, lines: int
) -> None:
    for number in range(10):
        (work / f"f{number}").write_text(str(number))
    first = look(work)
    made = await checkpoint(manager, work)
    for number in range(10):
        (work / f"f{number}").write_text("changed")
    shutil.rmtree(work / "src")
    (work / "new").mkdir()
    second = look(work)
    await be_killed(root, killer(tmp_path, "cat-file", before=lines), "restore", str(work), made.id)
    safety = (await manager.list_checkpoints(work))[0]
    await manager.restore(work, made.id)
    assert look(work) == first
    if safety.before_restore:
        await manager.restore(work, safety.id)
    assert look(work) == (second if safety.before_restore else first)


async def test_restore_stops_at_what_changed_meanwhile_and_can_be_undone(
    work: Path, root: Path, tmp_path: Path, manager: CheckpointManager
) -> None:
    made = await checkpoint(manager, work)
    (work / "latest").unlink()
    (work / "run.sh").write_text("changed")
    (work / "src" / "main.py").write_text("changed")
    before = look(work)
    meddler = killer(
        tmp_path, "cat-file", before=5, act=f"open({str(work / 'run.sh')!r}, 'w').write('newer')"
    )
    with pytest.raises(errors.RestoreStopped, match=r"run\.sh.*changed meanwhile") as stopped:
        await CheckpointManager(root=root, git=meddler).restore(work, made.id)
    assert (work / "run.sh").read_text() == "newer"
    await manager.restore(work, vars(stopped.value)["safety"])
    assert look(work) == before


async def test_locks_and_drafts_of_the_dead_are_cleared(
    work: Path, root: Path, manager: CheckpointManager
) -> None:
    made = await checkpoint(manager, work)
    refs = store_of(root) / "git" / "refs" / "checkpoints"
    for lock in (refs / f"{made.id}.lock", store_of(root) / "git" / "packed-refs.lock"):
        lock.write_text("")
    (work / "src" / ".frontdesk-restore-0123456789abcdef").write_text("half")
    (work / "new").write_text("new")
    await checkpoint(manager, work)
    await CheckpointManager(max_checkpoints=1, root=root).prune(work)
    (remaining,) = await manager.list_checkpoints(work)
    await manager.restore(work, remaining.id)
    assert sorted(path.name for path in (work / "src").iterdir()) == ["main.py"]


async def test_checkpoint_that_cannot_be_read_does_not_hide_the_others(
    work: Path, root: Path, manager: CheckpointManager, caplog: pytest.LogCaptureFixture
) -> None:
    made = await checkpoint(manager, work)
    store = store_of(root) / "git"
    tree = git(store, "rev-parse", f"refs/checkpoints/{made.id}^{{tree}}").strip()
    odd = git(store, "commit-tree", tree, "-m", "no checkpoint").strip()
    git(store, "update-ref", f"refs/checkpoints/{OTHER_ID}", odd)
    with caplog.at_level(logging.WARNING, "frontdesk"):
        assert await manager.list_checkpoints(work) == [made]
    assert "checkpoint_unreadable" in caplog.text
