"""The source as the tests of this folder read it: its files, their trees, and what is a plug-in's folder."""

import ast
import gc
import tomllib
from functools import cache
from pathlib import Path
from typing import Any

import frontdesk

ROOT = Path(__file__).parents[2]
SOURCE = Path(frontdesk.__file__).parent
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
ENGINES = ("sqlite", "postgres")


@cache
def files() -> dict[str, ast.Module]:
    """Each module's path below the package, with its tree. Half a million nodes stay as long as the process:
    to look for garbage among them takes four times as long as to read them."""
    gc.disable()
    try:
        return {
            path.relative_to(SOURCE).as_posix(): ast.parse(path.read_text(encoding="utf-8"))
            for path in sorted(SOURCE.rglob("*.py"))
        }
    finally:
        gc.freeze()
        gc.enable()


def is_plug_in(path: str) -> bool:
    """Whether it is in the folder of a part that is found by name; the files in each have the same names."""
    room, *folders = Path(path).parent.parts or ("",)
    return bool(folders) and (room in ("channels", "agents") or (room == "stores" and folders[0] in ENGINES))


def length_of(path: str) -> int:
    return len((SOURCE / path).read_text(encoding="utf-8").splitlines())
