"""The shelf: bytes by their digests, for their owner alone."""

import hashlib
import os
import stat
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from frontdesk import errors
from frontdesk.contracts.files import Shelved
from frontdesk.files import FileShelf

MOST = 1000
PNG = b"\x89PNG\r\n\x1a\n" + bytes(20)


async def pieces(*given: bytes) -> AsyncIterator[bytes]:
    for piece in given:
        yield piece


@pytest.fixture
def shelf(tmp_path: Path) -> FileShelf:
    return FileShelf(tmp_path / "home" / "files", private=(tmp_path / "home",))


@pytest.fixture
def work(tmp_path: Path) -> Path:
    (tmp_path / "work").mkdir()
    return tmp_path / "work"


async def put(shelf: FileShelf, data: bytes) -> Shelved:
    shelved = await shelf.write(pieces(data), MOST)
    await shelf.place(shelved)
    return shelved


def files_in(folder: Path) -> list[Path]:
    return [each for each in folder.rglob("*") if each.is_file()]


async def test_bytes_are_found_by_their_digest_and_only_their_owner_reads_them(shelf: FileShelf) -> None:
    shelved = await shelf.write(pieces(b"hel", b"lo"), MOST)
    assert shelf.find(shelved.digest) is None
    await shelf.place(shelved)
    found = shelf.find(hashlib.sha256(b"hello").hexdigest())
    assert found is not None
    assert await shelf.read(shelved.digest, MOST) == b"hello"
    assert stat.S_IMODE(found.stat().st_mode) == 0o600
    assert stat.S_IMODE(found.parent.stat().st_mode) == 0o700
    assert stat.S_IMODE(shelf.folder.stat().st_mode) == 0o700


async def test_same_bytes_are_kept_once(shelf: FileShelf) -> None:
    for _ in range(3):
        await put(shelf, PNG)
    (found,) = files_in(shelf.folder)
    assert found.suffix == ".png"


async def test_too_many_bytes_are_refused_and_leave_nothing(shelf: FileShelf) -> None:
    with pytest.raises(errors.FileUnavailable, match="larger than 1000 bytes"):
        await shelf.write(pieces(bytes(600), bytes(600)), MOST)
    assert files_in(shelf.folder) == []


async def test_nothing_is_taken_while_the_disk_is_nearly_full(tmp_path: Path) -> None:
    shelf = FileShelf(tmp_path / "files", spares_bytes=2**62)
    with pytest.raises(errors.FileUnavailable, match="there is no room for it"):
        await shelf.write(pieces(b"hello"), MOST)
    assert files_in(shelf.folder) == []


async def test_names_that_are_no_digests_lead_nowhere(shelf: FileShelf, tmp_path: Path) -> None:
    (tmp_path / "home" / "secret").parent.mkdir(exist_ok=True)
    (tmp_path / "home" / "secret").write_text("key")
    for name in ("../secret", "*", "a" * 63, "A" * 64, "", "../" * 20 + "etc/passwd"):
        assert shelf.find(name) is None
        await shelf.remove(name)
    assert (tmp_path / "home" / "secret").exists()


async def test_old_bytes_are_told_and_unfinished_ones_removed(shelf: FileShelf) -> None:
    old, new = await put(shelf, b"old"), await put(shelf, b"new")
    await shelf.write(pieces(b"unfinished"), MOST)
    for each in files_in(shelf.folder):
        if new.digest not in each.name:
            os.utime(each, (0, 0))
    an_hour_ago = datetime.now(UTC) - timedelta(hours=1)
    assert await shelf.stale(an_hour_ago) == [old.digest]
    assert len(files_in(shelf.folder)) == 2
    await put(shelf, b"old")
    assert await shelf.stale(an_hour_ago) == []


async def test_file_of_the_working_directory_is_copied(shelf: FileShelf, work: Path) -> None:
    (work / "out").mkdir()
    (work / "out" / "plot.png").write_bytes(PNG)
    (work / "link.png").symlink_to("out/plot.png")
    for path in ("out/plot.png", "./out/../out/plot.png", str(work / "out" / "plot.png"), "link.png"):
        assert (await shelf.copy(path, str(work), MOST)).head == PNG


async def test_nothing_outside_the_working_directory_is_copied(
    shelf: FileShelf, work: Path, tmp_path: Path
) -> None:
    (tmp_path / "secret").write_text("key")
    (work / "link").symlink_to(tmp_path / "secret")
    (work / "folder").symlink_to(tmp_path)
    os.mkfifo(work / "pipe")
    outside = ["../secret", str(tmp_path / "secret"), "link", "folder/secret", "/proc/self/environ"]
    for path in [*outside, ".", "", "missing", "pipe", "a\0b", "x" * 5000]:
        with pytest.raises(errors.FileUnavailable):
            await shelf.copy(path, str(work), MOST)


async def test_nothing_of_frontdesk_itself_is_copied_even_inside_the_working_directory(
    shelf: FileShelf, tmp_path: Path
) -> None:
    kept = await put(shelf, b"somebody else's")
    (tmp_path / "home" / "state.db").write_text("rows")
    for path in ("home/state.db", str(shelf.find(kept.digest))):
        with pytest.raises(errors.FileUnavailable, match="belongs to frontdesk"):
            await shelf.copy(path, str(tmp_path), MOST)


async def test_working_directory_in_the_home_folder_is_the_agents_own(
    shelf: FileShelf, tmp_path: Path
) -> None:
    work = tmp_path / "home" / "work"
    work.mkdir(parents=True)
    (work / "plot.png").write_bytes(PNG)
    (tmp_path / "home" / "state.db").write_text("rows")
    assert (await shelf.copy("plot.png", str(work), MOST)).head == PNG
    for path in ("../state.db", "state.db"):
        with pytest.raises(errors.FileUnavailable):
            await shelf.copy(path, str(work), MOST)
    with pytest.raises(errors.FileUnavailable, match="belongs to frontdesk"):
        await shelf.copy("state.db", str(tmp_path / "home"), MOST)
