"""A command as people approve it and as it is run: this program, these arguments, here, this environment, and
this input."""

import hashlib
import os
import signal
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import NoReturn

import msgspec

from frontdesk import errors
from frontdesk.cli.confirm.interpreters import (
    READ_BYTES,
    SCRIPT,
    Executable,
    find_program,
    interpreters_of,
    look_at,
    sha256_of,
)

PASSED_ON = ("HOME", "LANG", "LC_ALL", "LOGNAME", "PATH", "TERM", "TMPDIR", "TZ", "USER")
"""The variables that every command gets. Others must be named, so that people see them."""
USUAL_PATH = "/usr/local/bin:/usr/bin:/bin"
MOST_INPUT_BYTES = 1024 * 1024
MOST_SHOWN_BYTES = 64 * 1024
"""Of longer input people see the size and the digest, as they do of what is no text."""
OPEN_FILES = "/dev/fd"
STANDARD_ERROR = 2
CANNOT_RUN, NOT_FOUND = 126, 127
"""What shells end with, too."""


class Input(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the command reads from its standard input."""

    sha256: str
    size: int
    text: str | None
    """All of it; None when it is no text, or a long one."""


class Program(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Everything that reaches the command: people see it, and nothing else is used."""

    argv: list[str]
    cwd: str
    """Without any link in it."""
    env: dict[str, str]
    executable: Executable
    interpreters: list[Executable]
    """What runs it when it is a script, each by the one before it: the interpreter that it names, and what
    ``env`` starts in its place."""
    stdin: Input | None
    """None for no input at all."""
    umask: str
    """In octal digits: what others may not do with the files that it makes."""


def describe(
    argv: Sequence[str],
    cwd: str,
    environ: Mapping[str, str],
    named: Iterable[str],
    given: bytes | None = None,
) -> Program:
    """The command as it is now, with what is given to it as its input. OSError when there is no such program;
    InvalidInput for what is no text, and for a script of which nobody can tell what runs it."""
    env = _environment(environ, named)
    _check_text([*argv, cwd, *env, *env.values()])
    executable, head = look_at(find_program(argv[0], cwd, env.get("PATH", USUAL_PATH)))
    return Program(
        argv=list(argv),
        cwd=cwd,
        env=env,
        executable=executable,
        interpreters=interpreters_of(executable.path, head, cwd, env),
        stdin=None if given is None else _describe_input(given),
        umask=f"{_umask():04o}",
    )


def read_input() -> bytes:
    """All of our standard input. InvalidInput when that is too much."""
    with open(0, "rb", closefd=False) as opened:
        given = opened.read(MOST_INPUT_BYTES + 1)
    if len(given) > MOST_INPUT_BYTES:
        raise errors.InvalidInput(
            what="The standard input", why=f"it is longer than {MOST_INPUT_BYTES} bytes"
        )
    return given


def _describe_input(given: bytes) -> Input:
    return Input(sha256=hashlib.sha256(given).hexdigest(), size=len(given), text=_text_of(given))


def _text_of(given: bytes) -> str | None:
    if len(given) > MOST_SHOWN_BYTES or b"\0" in given:
        return None
    try:
        return given.decode()
    except UnicodeDecodeError:
        return None


def _umask() -> int:
    """What is in force; the system tells it only to whoever sets another one."""
    found = os.umask(0o077)
    os.umask(found)
    return found


def _environment(environ: Mapping[str, str], named: Iterable[str]) -> dict[str, str]:
    """What the command gets: the usual variables, and those that are named, perhaps with a value."""
    env = {name: environ[name] for name in PASSED_ON if name in environ}
    for each in named:
        name, given, value = each.partition("=")
        if not name:
            raise errors.InvalidInput(what=f"The variable {each!r}", why="use NAME or NAME=VALUE")
        if given or name in environ:
            env[name] = value if given else environ[name]
    return env


def _check_text(texts: Iterable[str]) -> None:
    for text in texts:
        try:
            text.encode()
        except UnicodeEncodeError:
            raise errors.InvalidInput(what=repr(text), why="it is not UTF-8, and cannot be shown") from None


class Here:
    """The directory that we are in, held from the beginning: another one under its name is noticed."""

    def __init__(self) -> None:
        self._held = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        self.path = os.getcwd()

    def check(self, approved: str) -> None:
        """Be where it was approved; ActionChanged when that is somewhere else by now."""
        try:
            os.chdir(approved)
            found = os.getcwd()
        except OSError as error:
            raise errors.ActionChanged(what=approved, why=error.strerror or str(error)) from error
        if found != approved:
            raise errors.ActionChanged(what=approved, why=f"it leads to {found}")
        if not os.path.samestat(os.stat("."), os.fstat(self._held)):
            raise errors.ActionChanged(what=approved, why="it is another directory")


def execute(program: Program, here: Here, given: bytes | None = None) -> NoReturn:
    """Become the command. ActionChanged when its place, its file, what runs that, or its input is not what
    was approved; OSError when the system does not run it."""
    here.check(program.cwd)
    _give(program.stdin, given)
    file = _checked(program.executable)
    head = os.pread(file, READ_BYTES, 0)
    _check_interpreters(program, head)
    # A program is run from the very file that was looked at. A script's interpreter opens it by its name.
    by_name = head.startswith(SCRIPT) or os.execve not in os.supports_fd
    sys.stdout.flush()
    sys.stderr.flush()
    os.umask(int(program.umask, 8))
    _keep_files()
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)
    os.execve(program.executable.path if by_name else file, program.argv, program.env)


def _give(approved: Input | None, given: bytes | None) -> None:
    """Make exactly the approved bytes our standard input; without any it is empty."""
    null = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
    os.dup2(null, 0)
    if approved is not None:
        if given is None or _describe_input(given) != approved:
            raise errors.ActionChanged(what="The standard input", why="its content has changed")
        with tempfile.TemporaryFile() as file:
            file.write(given)
            file.seek(0)
            os.dup2(file.fileno(), 0)
    # That is not done by dup2 where both are the same one.
    os.set_inheritable(0, True)


def _keep_files() -> None:
    """Let the command have no open file but the first three."""
    for name in os.listdir(OPEN_FILES):
        with suppress(OSError):  # the one that this list was read from is closed by now
            if int(name) > STANDARD_ERROR:
                os.set_inheritable(int(name), False)


def _checked(approved: Executable) -> int:
    """The program's file, opened: the approved one."""
    path = approved.path
    with suppress(OSError):
        if os.path.realpath(path) != path:
            raise errors.ActionChanged(what=path, why=f"it leads to {os.path.realpath(path)}")
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError as error:
        raise errors.ActionChanged(what=path, why=error.strerror or str(error)) from error
    if sha256_of(file) != approved.sha256:
        raise errors.ActionChanged(what=path, why="its content has changed")
    return file


def _check_interpreters(program: Program, head: bytes) -> None:
    """What would run a script now is what was approved, each file of it."""
    try:
        found = interpreters_of(program.executable.path, head, program.cwd, program.env)
    except (OSError, errors.InvalidInput) as error:
        raise errors.ActionChanged(what=program.executable.path, why=str(error)) from error
    if found != program.interpreters:
        changed = next((each for each in program.interpreters if each not in found), program.executable)
        raise errors.ActionChanged(what=changed.path, why="the script would be run by something else")
