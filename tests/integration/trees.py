"""Trees of files for the tests of checkpoints: made at random, planted, and looked at."""

import os
import stat
from collections.abc import Mapping
from pathlib import Path

from hypothesis import strategies as st

Node = tuple[str, int, bytes]
"""Kind, permissions and contents (a link's target) of what stands at a path."""

ODD_NAMES = [
    "a",
    "b",
    "plain.txt",
    "two words",
    "line\nend",
    "tab\tbed",
    "-rf",
    "--help",
    ":(glob)*",
    '"quoted"',
    "back\\slash",
    "ünï",
    "日本",
    ".hidden",
    ".gitattributes",
    ".gitignore",
    ".gitmodules",
    "HEAD",
    "git~1",
    "not-utf8-\udcff",
]
CONTENTS = [
    b"",
    b"x",
    b"a\r\nb\r\n",
    b"$Id$\n",
    b"\x00\xff\xfe",
    b"* text eol=crlf filter=lfs ident\n",
    b"[core]\n",
]

NAMES = st.sampled_from(ODD_NAMES)
MODES = st.sampled_from([0o644, 0o600, 0o755, 0o700, 0o444, 0o640, 0o664, 0o4755])
FOLDER_MODES = st.sampled_from([0o755, 0o700, 0o555, 0o750, 0o1777, 0o2775])
FILES = st.tuples(st.just("file"), MODES, st.sampled_from(CONTENTS) | st.binary(max_size=50))
TARGETS = st.sampled_from([b"a", b"nowhere", b"/etc/passwd", b"..", b".", b"\xff", b"two words"])
LINKS = st.tuples(st.just("link"), st.just(0), TARGETS)
TREES = st.recursive(
    st.dictionaries(NAMES, FILES | LINKS, max_size=4),
    lambda inner: st.dictionaries(NAMES, FILES | LINKS | st.tuples(FOLDER_MODES, inner), max_size=4),
    max_leaves=12,
)


def plant(folder: Path, tree: Mapping[str, object]) -> None:
    """Make a random tree be in a folder."""
    for name, node in tree.items():
        path = folder / name
        match node:
            case ("file", int(mode), bytes(data)):
                path.write_bytes(data)
                path.chmod(mode)
            case ("link", _, bytes(target)):
                os.symlink(target, os.fsencode(path))
            case (int(mode), dict(inner)):
                path.mkdir()
                plant(path, inner)
                path.chmod(mode)


def look(folder: Path) -> dict[str, Node]:
    """All that is in a folder, to the last bit."""
    found: dict[str, Node] = {}
    for above, folders, files in os.walk(folder):
        for name in (*folders, *files):
            path = Path(above, name)
            found[str(path.relative_to(folder))] = _node(path)
    return found


def _node(path: Path) -> Node:
    status = path.lstat()
    mode = status.st_mode & 0o7777
    if stat.S_ISLNK(status.st_mode):
        return "link", 0, os.readlink(os.fsencode(path))
    if stat.S_ISDIR(status.st_mode):
        return "folder", mode, b""
    return ("file", mode, path.read_bytes()) if stat.S_ISREG(status.st_mode) else ("other", mode, b"")


def clear(folder: Path) -> None:
    """Take everything out of a folder."""
    for above, folders, files in os.walk(folder, topdown=False):
        for name in files:
            Path(above, name).unlink()
        for name in folders:
            path = Path(above, name)
            path.unlink() if path.is_symlink() else path.rmdir()
