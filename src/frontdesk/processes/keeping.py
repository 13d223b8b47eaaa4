"""Programs end with the process that started them, whatever ends it.

A watchdog, which is told of each group, ends them as soon as this process is gone. The parent-death signal of
Linux would reach the program alone, not what it started. If the watchdog was killed, too, the next start ends
them by the record: a file for each group, in a folder for each process.
"""

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

import msgspec

from frontdesk.logs import get_logger

log = get_logger(__name__)

PROC = Path("/proc")
BOOT_ID = PROC / "sys/kernel/random/boot_id"
BOOT_CHARACTERS = 8
CORPSES = ("Z", "X")
STATE, GROUP, STARTED = 0, 2, 19
"""Places in /proc/PID/stat, counted from behind the program's name."""
PS_SECONDS = 5.0
VARIABLE = "_FRONTDESK_STARTED_BY"
"""Tells whose a process is when the first of its group has ended."""
LAST_SECONDS = 5.0
LOOK_SECONDS = 0.02
# The inner shell belongs to nobody, so that it is no child that somebody else waits for.
WATCHDOG = """
exec 3<&0
(
    groups=' '
    while read -r change group; do
        case $change in
            +) groups="$groups$group " ;;
            -) groups="${groups%%" $group "*} ${groups#*" $group "}" ;;
        esac
    done
    for group in $groups; do kill -s KILL -- "-$group"; done
) <&3 3<&- &
"""


class LivingProcess(msgspec.Struct, frozen=True, kw_only=True):
    """A living process."""

    pid: int
    group: int
    mark: str
    """The same for as long as the process lives, and no other's on this machine."""


def find(pid: int) -> LivingProcess | None:
    return next((each for each in _look(pid)), None)


def members(group: int) -> list[LivingProcess]:
    return [each for each in _look(None) if each.group == group]


def variable_of(pid: int, name: str) -> str | None:
    """What a process was given in its environment, where the system tells."""
    try:
        variables = (PROC / str(pid) / "environ").read_bytes().split(b"\0")
    except OSError:
        return None
    start = f"{name}=".encode()
    return next((each[len(start) :].decode() for each in variables if each.startswith(start)), None)


def _look(pid: int | None) -> Iterator[LivingProcess]:
    """That process, or all."""
    if not BOOT_ID.exists():
        yield from _ask(pid)
        return
    for each in [pid] if pid else [int(entry.name) for entry in PROC.iterdir() if entry.name.isdecimal()]:
        seen = _read(each)
        if seen:
            yield seen


def _read(pid: int) -> LivingProcess | None:
    try:
        facts = (PROC / str(pid) / "stat").read_text(errors="replace").rpartition(")")[2].split()
    except OSError:  # it has ended
        return None
    if facts[STATE] in CORPSES:
        return None
    return LivingProcess(pid=pid, group=int(facts[GROUP]), mark=f"{pid}-{_boot()}-{facts[STARTED]}")


@cache
def _boot() -> str:
    """Start times are counted from here."""
    return BOOT_ID.read_text()[:BOOT_CHARACTERS]


def _ask(pid: int | None) -> Iterator[LivingProcess]:
    """The same where there is no /proc."""
    whom = ("-p", str(pid)) if pid else ("-A",)
    command = ("ps", *whom, "-o", "pid=,pgid=,stat=,lstart=")
    listed = subprocess.run(
        command, capture_output=True, check=False, timeout=PS_SECONDS, env={**os.environ, "LC_ALL": "C"}
    )
    for line in listed.stdout.decode(errors="replace").splitlines():
        number, group, state, *started = line.split()
        if not state.startswith(CORPSES):
            mark = "-".join((number, *started)).replace(":", "")
            yield LivingProcess(pid=int(number), group=int(group), mark=mark)


class Keeper:
    """Knows the groups that run."""

    def __init__(self, folder: Path, mark: str) -> None:
        self.mark = mark
        self._folder = folder / mark
        self._groups: dict[int, Path] = {}
        self._pipe: int | None = None

    def add(self, group: int) -> None:
        """Keep it from outliving us."""
        seen = find(group)
        self._groups[group] = self._folder / (seen.mark if seen else str(group))
        self._tell("+", group)
        try:
            for folder in (self._folder.parent, self._folder):  # parents would get the usual permissions
                folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._groups[group].touch()
        except OSError as error:
            log.warning("program_not_recorded", pid=group, why=str(error))

    def remove(self, group: int) -> None:
        """It has ended; from now on its number may be another's."""
        file = self._groups.pop(group, None)
        if file is None:
            return
        self._tell("-", group)
        with suppress(OSError):
            file.unlink()

    def close(self) -> None:
        """Watch no longer. What runs now is not ended: another gateway of this process may need it."""
        for group in tuple(self._groups):
            self.remove(group)
        self._hang_up()
        with suppress(OSError):
            self._folder.rmdir()

    def _tell(self, change: str, group: int) -> None:
        try:
            if self._pipe is not None:
                os.write(self._pipe, f"{change} {group}\n".encode())
                return
        except BrokenPipeError:  # it was killed
            self._hang_up()
        except BlockingIOError:
            log.warning("watchdog_does_not_hear", group=group)
            return
        self._begin()

    def _hang_up(self) -> None:
        if self._pipe is not None:
            os.close(self._pipe)
            self._pipe = None

    def _begin(self) -> None:
        """Start a watchdog over everything that runs."""
        if not self._groups:
            return
        try:
            self._pipe = _start_watchdog()
            os.write(self._pipe, "".join(f"+ {group}\n" for group in self._groups).encode())
        except OSError as error:
            log.warning("watchdog_not_started", why=str(error))


def _start_watchdog() -> int:
    """What it is told through."""
    theirs, ours = os.pipe()
    try:
        nowhere = subprocess.DEVNULL
        subprocess.run(
            ["/bin/sh", "-c", WATCHDOG],
            stdin=theirs,
            stdout=nowhere,
            stderr=nowhere,
            cwd="/",
            env={},
            start_new_session=True,
            check=True,
        )
    except BaseException:
        os.close(ours)
        raise
    finally:
        os.close(theirs)
    os.set_blocking(ours, False)
    return ours


_keepers: list[Keeper] = []


@contextmanager
def kept(folder: Path) -> Iterator[None]:
    """In here, no program that is started outlives this process."""
    ourselves = find(os.getpid())
    keeper = Keeper(folder, ourselves.mark if ourselves else str(os.getpid()))
    _keepers.append(keeper)
    try:
        yield
    finally:
        _keepers.remove(keeper)
        keeper.close()


def marked(env: Mapping[str, str] | None) -> Mapping[str, str] | None:
    """The environment for a program."""
    if not _keepers:
        return env
    return {**(os.environ if env is None else env), VARIABLE: _keepers[-1].mark}


def add(group: int) -> None:
    for keeper in _keepers:
        keeper.add(group)


def remove(group: int) -> None:
    for keeper in _keepers:
        keeper.remove(group)


def end_left(folder: Path) -> int:
    """End what processes that are gone have left running, and wait until it has ended; how many groups."""
    ended = 0
    for left in sorted(folder.iterdir()) if folder.is_dir() else []:
        seen = find(_number(left.name))
        if seen is None or seen.mark != left.name:  # whoever started them is gone
            ended += sum(_end(left.name, each.name) for each in left.iterdir())
            shutil.rmtree(left, ignore_errors=True)
    return ended


def _number(mark: str) -> int:
    number = mark.partition("-")[0]
    return int(number) if number.isdecimal() else -1


def _end(starter: str, mark: str) -> bool:
    """Whether something of that group was still running, and was ended."""
    group = _number(mark)
    # The number may be another's by now: the group is known by its first process, or by what that has left.
    found = members(group) if group > 1 else []
    if not any(each.mark == mark or variable_of(each.pid, VARIABLE) == starter for each in found):
        return False
    log.warning("program_ended", group=group, why="the gateway that started it is gone")
    deadline = time.monotonic() + LAST_SECONDS
    while members(group):
        if time.monotonic() > deadline:
            log.warning("program_not_ended", group=group)
            break
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(group, signal.SIGKILL)
        time.sleep(LOOK_SECONDS)
    return True
