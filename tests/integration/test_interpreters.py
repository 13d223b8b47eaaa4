"""What runs a script, as people see it before they approve a command."""

import hashlib
import os
import sys
from pathlib import Path

import pytest

from frontdesk import errors
from frontdesk.cli.confirm import programs
from frontdesk.cli.confirm.interpreters import Executable

PYTHON = os.path.realpath(sys.executable)
ENV, SH = "/usr/bin/env", "/bin/sh"


def script(path: Path, first: str, rest: str = "") -> Path:
    path.write_text(f"{first}\n{rest}")
    path.chmod(0o755)
    return path


def file(path: str | Path) -> Executable:
    resolved = os.path.realpath(path)
    return Executable(path=resolved, sha256=hashlib.sha256(Path(resolved).read_bytes()).hexdigest())


def runs(path: Path, **env: str) -> list[Executable]:
    environ = {"PATH": os.environ["PATH"]} | env
    described = programs.describe([str(path)], str(path.parent), environ, list(env))
    assert described.executable == file(path)
    return described.interpreters


@pytest.mark.parametrize("first", [f"#!{SH}", f"#! {SH}", f"#!\t{SH}  -e", f"#!{SH} -e "])
def test_interpreter_is_in_what_is_approved(tmp_path: Path, first: str) -> None:
    assert runs(script(tmp_path / "tool", first)) == [file(SH)]


def test_program_has_no_interpreter(tmp_path: Path) -> None:
    link = tmp_path / "sh"
    link.symlink_to(SH)
    assert programs.describe([str(link)], str(tmp_path), {}, ()).interpreters == []


@pytest.mark.parametrize(
    "argument", ["tool2", "-S tool2 -u", "-Stool2", "-S A=1 tool2 x", "--split-string=tool2", "-vS tool2"]
)
def test_env_is_resolved_by_the_path_that_the_command_gets(tmp_path: Path, argument: str) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    for folder in (first, second):
        folder.mkdir()
        (folder / "tool2").symlink_to(PYTHON if folder is first else SH)
    tool = script(tmp_path / "tool", f"#!{ENV} {argument}")
    assert runs(tool, PATH=f"{first}:{second}") == [file(ENV), file(PYTHON)]
    assert runs(tool, PATH=f"{second}:{first}") == [file(ENV), file(SH)]


def test_script_that_is_run_by_a_script_has_both(tmp_path: Path) -> None:
    inner = script(tmp_path / "inner", f"#!{SH}")
    outer = script(tmp_path / "outer", f"#!{inner}")
    assert runs(outer) == [file(inner), file(SH)]


def test_interpreter_is_found_from_where_the_command_runs(tmp_path: Path) -> None:
    (tmp_path / "mine").symlink_to(SH)
    assert runs(script(tmp_path / "tool", "#!mine")) == [file(SH)]


@pytest.mark.parametrize(
    "first",
    [
        f"#!{ENV} -i sh",
        f"#!{ENV} -S -i sh",
        f"#!{ENV} -S PATH=/tmp sh",
        f"#!{ENV} PATH=/tmp",
        f"#!{ENV} -S $SHELL",
        f"#!{ENV} -S 'sh'",
        f"#!{ENV}",
        f"#!{ENV} -",
        "#!",
        "#!   ",
        f"#!{SH}\x1b[2K",
        f"#!{SH} {'x' * 300}",
    ],
)
def test_script_of_which_nobody_can_tell_what_runs_it_is_refused(tmp_path: Path, first: str) -> None:
    with pytest.raises(errors.InvalidInput):
        runs(script(tmp_path / "tool", first))


def test_scripts_that_run_each_other_end(tmp_path: Path) -> None:
    script(tmp_path / "one", f"#!{tmp_path}/two")
    with pytest.raises(errors.InvalidInput, match="without end"):
        runs(script(tmp_path / "two", f"#!{tmp_path}/one"))


def test_interpreter_that_is_not_there_is_told(tmp_path: Path) -> None:
    for first in ("#!/nowhere/sh", f"#!{ENV} nothing-of-that-name"):
        with pytest.raises(FileNotFoundError):
            runs(script(tmp_path / "tool", first))
