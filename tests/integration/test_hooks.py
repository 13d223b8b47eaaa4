"""Hooks, with real programs and packages: what they are told, and that nothing they do stops anything."""

import asyncio
import json
import logging
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from frontdesk import EndReason, Platform, SessionEntry, config, errors
from frontdesk.app.build import open_gateway
from frontdesk.contracts.hooks import Commands, Hooks, LoadTranscript, NoHooks
from frontdesk.hooks import commands as programs
from frontdesk.hooks import load_packages, open_hooks

NOON = datetime(2026, 5, 4, 12, tzinfo=UTC)
ENTRY = SessionEntry(
    session_key="agent:main:telegram:dm:42",
    session_id="20260504_120000_0a1b2c3d",
    created_at=NOON,
    updated_at=NOON,
    platform=Platform.TELEGRAM,
)
TRANSCRIPT = [{"role": "user", "content": "Grüße"}, {"role": "assistant", "content": "Hi"}]
LONG = 60


async def load() -> list[dict[str, Any]]:
    return TRANSCRIPT


def hooks_of(*command: str, seconds: int = LONG) -> Hooks:
    """Hooks that run the same command for every event."""
    return open_hooks(
        Commands(
            on_session_start=command,
            on_session_end=command,
            on_session_finalize=command,
            timeout_seconds=seconds,
        ),
        packages=(),
    )


def shell(script: str, seconds: int = LONG) -> Hooks:
    return hooks_of("/bin/sh", "-c", script, seconds=seconds)


Tell = Callable[[Hooks], Awaitable[None]]
EVENTS: dict[str, Tell] = {
    "on_session_start": lambda hooks: hooks.on_session_start(ENTRY),
    "on_session_end": lambda hooks: hooks.on_session_end(ENTRY, EndReason.IDLE),
    "on_session_finalize": lambda hooks: hooks.on_session_finalize(ENTRY, EndReason.IDLE, load),
}
every_event = pytest.mark.parametrize("event", EVENTS)


@pytest.fixture
def logged(caplog: pytest.LogCaptureFixture) -> Callable[[], list[str]]:
    caplog.set_level(logging.INFO, logger="frontdesk.hooks")
    return lambda: [f"{record.levelname} {record.getMessage()}" for record in caplog.records]


# what a command is told


@every_event
async def test_command_is_told_event_session_and_key_as_json(event: str, tmp_path: Path) -> None:
    told = tmp_path / "told.json"
    await EVENTS[event](shell(f"cat > '{told}'"))
    data = json.loads(told.read_text(encoding="utf-8"))
    assert data.pop("event") == event
    assert data.pop("idempotency_key") == f"{ENTRY.session_id}:{event}"
    assert SessionEntry.from_dict(data.pop("session")) == ENTRY
    expected: dict[str, Any] = {} if event == "on_session_start" else {"reason": "idle"}
    assert data == expected | ({"transcript": TRANSCRIPT} if event == "on_session_finalize" else {})


async def test_arguments_reach_the_command_as_they_are(tmp_path: Path) -> None:
    told, words = tmp_path / "words", ("a b", "$HOME", "*", "")
    script = f"import sys; open({str(told)!r}, 'w').write(repr(sys.argv[1:]))"
    await hooks_of(sys.executable, "-c", script, *words).on_session_start(ENTRY)
    assert told.read_text() == repr(list(words))


async def test_event_without_a_command_starts_nothing_and_reads_nothing(
    logged: Callable[[], list[str]],
) -> None:
    async def refuse() -> list[dict[str, Any]]:
        raise AssertionError("nobody asked for the transcript")

    hooks = open_hooks(Commands(on_session_end=("/bin/false",)), packages=())
    await hooks.on_session_start(ENTRY)
    await hooks.on_session_finalize(ENTRY, EndReason.IDLE, refuse)
    assert logged() == []


# what becomes of a command


@every_event
async def test_finished_command_is_logged_with_its_output(
    event: str, logged: Callable[[], list[str]]
) -> None:
    await EVENTS[event](shell("echo saved; echo 3 notes >&2"))
    (line,) = logged()
    assert line.startswith("INFO event=hook_finished ")
    assert json.dumps("saved\n3 notes") in line
    assert f"hook_event={event} session={ENTRY.session_id}" in line


@pytest.mark.parametrize(("script", "code"), [("echo no; exit 3", 3), ("kill -9 $$", -9)])
@every_event
async def test_command_that_fails_or_dies_is_a_warning_and_stops_nothing(
    event: str, script: str, code: int, logged: Callable[[], list[str]]
) -> None:
    await EVENTS[event](shell(script))
    (line,) = logged()
    assert line.startswith(f"WARNING event=hook_failed code={code} ")


@pytest.mark.parametrize("program", ["/nowhere/at/all", "/", "with\0nul"])
@every_event
async def test_command_that_cannot_be_started_is_a_warning_and_to_be_told_again(
    event: str, program: str, logged: Callable[[], list[str]]
) -> None:
    with pytest.raises(errors.HookNotStarted):
        await EVENTS[event](hooks_of(program))
    (line,) = logged()
    assert line.startswith("WARNING event=hook_not_started ")


async def test_command_that_never_reads_its_input_is_no_failure(logged: Callable[[], list[str]]) -> None:
    async def load_much() -> list[dict[str, Any]]:
        return [{"role": "user", "content": "x" * 3_000_000}]

    await shell("exit 0").on_session_finalize(ENTRY, EndReason.IDLE, load_much)
    assert [line.split()[1] for line in logged()] == ["event=hook_finished"]


async def test_long_transcript_arrives_whole(tmp_path: Path) -> None:
    told = tmp_path / "told.json"
    transcript = [{"role": "user", "content": "x" * 3_000_000}]

    async def load_much() -> list[dict[str, Any]]:
        return transcript

    await shell(f"cat > '{told}'").on_session_finalize(ENTRY, EndReason.IDLE, load_much)
    assert json.loads(told.read_bytes())["transcript"] == transcript


async def test_flood_is_read_to_its_end_and_little_of_it_kept() -> None:
    finished = await programs.run(["/bin/sh", "-c", "yes | head -c 30000000"], b"", LONG)
    assert finished.code == 0
    assert len(finished.output) <= programs.MAX_OUTPUT_BYTES
    assert finished.output.startswith("y\ny\n")


async def test_endless_flood_ends_with_its_time() -> None:
    finished = await programs.run(["/bin/sh", "-c", "yes"], b"", 0.5)
    assert finished.code is None
    assert 0 < len(finished.output) <= programs.MAX_OUTPUT_BYTES


async def test_output_that_is_no_text_is_shown_as_far_as_it_can_be() -> None:
    finished = await programs.run(["/bin/sh", "-c", r"printf 'a\377b'"], b"", LONG)
    assert finished.output == "a\N{REPLACEMENT CHARACTER}b"


# nothing is left of a command


class Pipe(NamedTuple):
    """A named pipe. Its stream ends when the last of the processes that hold it open is gone."""

    path: Path
    stream: asyncio.StreamReader

    async def rest(self) -> bytes:
        async with asyncio.timeout(LONG):
            return await self.stream.read()


@pytest.fixture
async def pipe(tmp_path: Path) -> AsyncIterator[Pipe]:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    stream = asyncio.StreamReader()
    end = os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK), "rb", buffering=0)
    transport, _ = await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(stream), end
    )
    yield Pipe(path, stream)
    transport.close()


async def test_hanging_command_is_killed_with_all_that_it_started(
    pipe: Pipe, logged: Callable[[], list[str]]
) -> None:
    script = f"trap '' TERM INT HUP; exec 3>'{pipe.path}'; echo x >&3; sleep 1000 & sleep 1000"
    await shell(script, seconds=3).on_session_start(ENTRY)
    assert await pipe.rest() == b"x\n"
    (line,) = logged()
    assert line.startswith("WARNING event=hook_timed_out seconds=3 ")


async def test_what_a_finished_command_left_running_is_killed(
    pipe: Pipe, logged: Callable[[], list[str]]
) -> None:
    script = f"exec 3>'{pipe.path}'; echo x >&3; sleep 1000 & echo done"
    await shell(script).on_session_end(ENTRY, EndReason.DAILY)
    assert await pipe.rest() == b"x\n"
    (line,) = logged()
    assert line.startswith("INFO event=hook_finished output=done ")


@pytest.mark.parametrize("_again", range(5))
async def test_cancelled_hook_leaves_no_command_behind(pipe: Pipe, _again: int) -> None:
    running = asyncio.ensure_future(
        shell(f"exec 3>'{pipe.path}'; echo x >&3; sleep 1000 & sleep 1000").on_session_start(ENTRY)
    )
    assert await pipe.stream.readline() == b"x\n"  # as early as can be: the start may still be under way
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert await pipe.rest() == b""


# hooks of a package


class Diary(NoHooks):
    """Hears of the end alone, and can be told to misbehave."""

    def __init__(self, trouble: Callable[[], Awaitable[None]] | None = None) -> None:
        self.trouble = trouble
        self.heard: list[object] = []

    async def on_session_finalize(
        self, entry: SessionEntry, reason: EndReason, load_transcript: LoadTranscript
    ) -> None:
        if self.trouble:
            await self.trouble()
        self.heard.append((entry.session_id, reason, await load_transcript()))


async def test_all_hooks_are_told_one_after_the_other() -> None:
    diaries = [Diary(), Diary()]
    hooks = open_hooks(packages=[(str(number), diary) for number, diary in enumerate(diaries)])
    for tell in EVENTS.values():
        await tell(hooks)
    assert [diary.heard for diary in diaries] == [[(ENTRY.session_id, EndReason.IDLE, TRANSCRIPT)]] * 2


async def fail() -> None:
    raise RuntimeError("disk of memories is full")


async def hang() -> None:
    await asyncio.Event().wait()


async def own_timeout() -> None:
    raise TimeoutError("the memory server")


@pytest.mark.parametrize(
    ("trouble", "line"),
    [
        (fail, "ERROR event=hook_raised hook=first hook_event=on_session_finalize"),
        (own_timeout, "ERROR event=hook_raised hook=first hook_event=on_session_finalize"),
        (hang, "WARNING event=hook_timed_out seconds=1 hook=first hook_event=on_session_finalize"),
    ],
)
async def test_hook_that_fails_or_hangs_does_not_stop_the_next(
    trouble: Callable[[], Awaitable[None]], line: str, logged: Callable[[], list[str]]
) -> None:
    second = Diary()
    hooks = open_hooks(Commands(timeout_seconds=1), packages=[("first", Diary(trouble)), ("second", second)])
    await EVENTS["on_session_finalize"](hooks)
    assert len(second.heard) == 1
    assert [entry.partition(" session=")[0] for entry in logged()] == [line]


async def test_command_whose_transcript_cannot_be_read_is_to_be_told_again(
    logged: Callable[[], list[str]],
) -> None:
    async def unreadable() -> list[dict[str, Any]]:
        raise errors.StoreClosed()

    with pytest.raises(errors.HookNotStarted):
        await shell("exit 0").on_session_finalize(ENTRY, EndReason.IDLE, unreadable)
    assert [line.split(" why")[0] for line in logged()] == ["WARNING event=hook_not_started"]


async def test_hook_that_could_not_be_started_does_not_keep_the_next_from_hearing() -> None:
    second = Diary()
    hooks = open_hooks(Commands(on_session_finalize=("/nowhere/at/all",)), packages=[("second", second)])
    with pytest.raises(errors.HookNotStarted):
        await EVENTS["on_session_finalize"](hooks)
    assert len(second.heard) == 1


def install(folder: Path, monkeypatch: pytest.MonkeyPatch, name: str, target: str, module: str) -> None:
    """A package with one entry point, on the path of this test."""
    info = folder / f"{name}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[frontdesk.hooks]\n{name} = {target}\n")
    (folder / f"{name}_module.py").write_text(module)
    monkeypatch.syspath_prepend(str(folder))


def test_hooks_of_an_installed_package_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module = "from frontdesk.contracts.hooks import NoHooks\nclass Memory(NoHooks):\n    pass\n"
    install(tmp_path, monkeypatch, "goodhook", "goodhook_module:Memory", module)
    assert [(name, type(hooks).__name__) for name, hooks in load_packages()] == [("goodhook", "Memory")]


@pytest.mark.parametrize(
    ("name", "module", "why"),
    [
        ("hookwithoutmodule", "import no_such_module_anywhere", "ModuleNotFoundError"),
        ("hookwithoutclass", "", "AttributeError"),
        ("hookthatraises", "def Memory():\n    raise RuntimeError('no disk')", "RuntimeError: no disk"),
        ("hookofnothing", "class Memory:\n    pass", "there is no on_session_start"),
    ],
)
def test_package_whose_hooks_cannot_be_loaded_is_an_error_that_names_it(
    name: str, module: str, why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(tmp_path, monkeypatch, name, f"{name}_module:Memory", module)
    with pytest.raises(errors.BrokenHook, match=f"'{name}' cannot be loaded .*{why}"):
        open_hooks()


@pytest.mark.parametrize(("code", "busy"), [(0, True), (1, False)])
async def test_command_says_by_its_exit_code_whether_work_goes_on(
    code: int, busy: bool, tmp_path: Path
) -> None:
    script = f"cat > {tmp_path / 'asked'}; exit {code}"
    hooks = open_hooks(Commands(has_active_processes=("/bin/sh", "-c", script)), packages=())
    assert await hooks.has_active_processes("agent:main:telegram:dm:42") is busy
    asked = json.loads((tmp_path / "asked").read_text())
    assert asked == {"event": "has_active_processes", "session_key": "agent:main:telegram:dm:42"}


async def test_command_that_does_not_answer_is_named() -> None:
    commands = Commands(has_active_processes=("/bin/sh", "-c", "echo what; exit 3"))
    with pytest.raises(errors.HookUndecided, match="ended with 3 and said 'what'"):
        await open_hooks(commands, packages=()).has_active_processes("agent:main:telegram:dm:42")


class Busy(NoHooks):
    async def has_active_processes(self, session_key: str) -> bool:
        return session_key.endswith(":42")


class Before:
    """Hooks from before there was the question."""


async def test_packages_are_asked_whether_work_goes_on() -> None:
    packages: Any = [("before", Before()), ("none", NoHooks()), ("busy", Busy())]
    hooks = open_hooks(packages=packages)
    assert await hooks.has_active_processes("agent:main:telegram:dm:42")
    assert not await hooks.has_active_processes("agent:main:telegram:dm:43")


async def test_gateway_that_is_run_asks_the_configured_command(tmp_path: Path) -> None:
    file = tmp_path / "frontdesk.toml"
    file.write_text(CONFIGURED.format(folder=tmp_path))
    async with open_gateway(config.load(file, {"HOME": str(tmp_path)})) as gateway:
        busy = gateway.parts.conversations.is_busy
        assert [await busy(f"agent:main:telegram:dm:{chat}") for chat in (42, 43)] == [True, False]


CONFIGURED = """
home = "{folder}/home"
[store]
url = "sqlite:///{folder}/state.db"
[agent]
driver = "scripted"
[hooks]
has_active_processes = ["/bin/sh", "-c", "grep -q ':42' "]
"""
