"""Paths in the arguments of an action, as rules compare them: in their normal form, where that is certain."""

import fnmatch
import re
import unicodedata
from collections.abc import Iterator
from urllib.parse import unquote

from frontdesk.model import lookalikes, spellings

MAX_CHARACTERS = 1000
"""What is longer is odd."""
MOST_COMPARED = 100
"""Up to here a text is compared by all that each character may be read as, beyond that by one."""
MOST_DECODINGS = 3
"""So often is %25 taken for a sign that was encoded once more."""

_BETWEEN = re.compile(r"[/\\]")
_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*://")
_AUTHORITY = re.compile(r"[A-Za-z0-9.-]+(?::[0-9]+)?")
_QUERY = re.compile(r"[!#-&(-;=?-\[\]_a-z~]*")
_DRIVE = re.compile(r"[A-Za-z]:(?=[/\\])")
_SIGNS = frozenset("._+@=-")
"""Signs in names of files that no program takes for anything else."""
_FIRST = frozenset("-@+=")
_SEPARATOR = r"[\s,;:|&<>()\"'`=]"
_SEVERAL = re.compile(rf"{_SEPARATOR}+")
"""What programs take for the end of one path and the beginning of another."""
_CLIMBING = re.compile(rf"(?:\A|[/\\]|{_SEPARATOR})\.\.(?:\Z|[/\\]|{_SEPARATOR})")
_EXPANDED = re.compile(
    r"[$*?{}\[\]`]|(?:\A|[\s:=/])~|~[0-9]|/proc/+[^/]+/+(?:root|cwd|fd|task)\b|/dev/+fd\b", re.IGNORECASE
)
"""What a shell, a system or another program replaces by something else."""
_ENDS = re.compile(r"(?<=[^./\\ ])[. ]+(?=[/\\]|\Z)")
"""Of names: some systems leave them out."""
_ONE = re.compile(r"\?|\[!?\]?[^\]]*\]")
"""What stands for one character in a pattern."""
NAMES = re.compile(r"(?:.*[_.-])?(?:path|file|filename|folder|dir|directory|cwd|src|dst|dest|destination)s?")
"""How arguments are called that are paths."""


def is_path(text: str) -> bool:
    return bool(_BETWEEN.search(text))


def certainly_like(text: str, pattern: str, argument: str = "") -> bool:
    """Whether the text of an argument fits, whoever reads it; ValueError when it does for some and may not
    for others."""
    if not fnmatch.fnmatchcase(text, pattern):
        return False
    if not pattern.strip("*"):
        return True
    if is_path(pattern) or NAMES.fullmatch(argument.lower()):
        odd = not _is_plain(text, pattern)
    else:
        odd = not _is_seen(text) or _climbs(text) or ("@" in pattern and bool(_SEVERAL.search(text)))
    if odd:
        raise ValueError("the text fits, and is odd")
    return True


def possibly_like(text: str, pattern: str) -> bool:
    """Whether a text fits for anybody who reads it; ValueError when that cannot be said."""
    if fnmatch.fnmatchcase(text, pattern):
        return True
    found = {text}
    if is_path(pattern):
        if len(text) > MAX_CHARACTERS:
            raise ValueError("the path is too long")
        found = {*_readings(text)}
        if any(fnmatch.fnmatchcase(each, pattern) for each in found):
            return True
        expands = not _SCHEME.match(pattern) and _EXPANDED.search(text)
        if expands or not _is_seen(text) or _climbs(text):
            raise ValueError("the path may lead anywhere")
    if any(_reads_like(each, pattern) for each in found):
        raise ValueError("the text reads like one that fits")
    return False


def _reads_like(text: str, pattern: str) -> bool:
    if len(text) <= MOST_COMPARED:
        return spellings.fits(text, pattern, between=frozenset())
    return fnmatch.fnmatchcase(spellings.plain(text), spellings.plain(pattern))


def exactly(text: str) -> str:
    """The pattern that fits this text alone."""
    return re.sub(r"[*?\[]", r"[\g<0>]", text)


def _is_plain(text: str, pattern: str) -> bool:
    """Whether a text that fits is one path, in its normal form, and nothing but that to any program."""
    if len(text) > MAX_CHARACTERS or not _is_seen(text) or not unicodedata.is_normalized("NFKC", text):
        return False
    if scheme := _SCHEME.match(pattern):
        rest = _ONE.sub(_within_name, pattern[scheme.end() :])
        return text.startswith(scheme[0]) and _is_plain_address(text[scheme.end() :], rest)
    if "\\" in pattern:
        text, pattern = (_DRIVE.sub("", each, count=1).replace("\\", "/") for each in (text, pattern))
    pattern = _ONE.sub(_within_name, pattern)
    # The folder itself is nothing that is in it.
    bare = text.rstrip("/")
    return _is_normal(text) and any(
        fnmatch.fnmatchcase(bare, each) for each in (pattern, pattern.rstrip("/"))
    )


def _within_name(one: re.Match[str]) -> str:
    """The same for a character within a name, no separator; nothing where that cannot be told apart."""
    if one[0] == "?":
        return "[!/]"
    return "[!\0-\U0010ffff]" if fnmatch.fnmatchcase("/", one[0]) else one[0]


def _is_plain_address(text: str, pattern: str) -> bool:
    """The host fits what stands for it in the pattern: no star there reaches into the path, and one at its
    end not into another domain."""
    host, slash, rest = text.partition("/")
    wanted, *more = pattern.split("/", 1)
    if wanted.endswith("*") and not _is_host(host, wanted.rstrip("*")):
        return False
    fits = fnmatch.fnmatchcase(rest, more[0]) if more else not slash or wanted.endswith("*")
    path, _, query = rest.partition("?")
    return (
        fits
        and bool(_AUTHORITY.fullmatch(host))
        and fnmatch.fnmatchcase(host, wanted)
        and (not path or (_is_normal(path) and not path.startswith("/")))
        and bool(_QUERY.fullmatch(query))
    )


def _is_host(host: str, beginning: str) -> bool:
    """Whether all of a host but for its port is in what a pattern begins with, where that has a domain."""
    return "." not in beginning or bool(re.fullmatch(r"(?::[0-9]*)?", host.removeprefix(beginning)))


def _is_normal(path: str) -> bool:
    """One that begins like an option, or like what stands for the content of a file, is not."""
    names = path.removeprefix("/").removesuffix("/").split("/")
    return path == "/" or (path[:1] not in _FIRST and all(map(_is_name, names)))


def _is_name(name: str) -> bool:
    if name.endswith((".", "=")) or not name:
        return False
    return all(each.isalnum() or each in _SIGNS or lookalikes.is_accent(each) for each in name)


def _is_seen(text: str) -> bool:
    """Whether a reader sees each character, and all of it on one line."""
    return text.isprintable() and not lookalikes.UNSEEN.search(text)


def _climbs(text: str) -> bool:
    """Whether a path leaves the folder that it begins in, however that is written."""
    return any(_CLIMBING.search(each) for each in _decoded(text))


def _decoded(text: str) -> Iterator[str]:
    """The text as it is, and as others may read it: decoded, in compatible characters, without the unseen."""
    seen = lookalikes.UNSEEN.sub("", "".join(each for each in text if each.isprintable() or each.isspace()))
    for each in {text, seen, unicodedata.normalize("NFKC", seen), _in_ascii(seen)}:
        yield each
        decoded = each
        for _ in range(MOST_DECODINGS):
            before, decoded = decoded, unquote(decoded)
            if before == decoded:
                break
            yield decoded


def _in_ascii(text: str) -> str:
    """With signs that pass for those of paths as these."""
    return "".join(
        sign if (sign := lookalikes.passes_for(each)) and not sign.isalnum() else each for each in text
    )


def _readings(text: str) -> Iterator[str]:
    """Every path that a program may find in a text, in its normal form."""
    for each in _decoded(text):
        for form in {
            each,
            each.replace("\\", "/"),
            _ENDS.sub("", each),
            _ENDS.sub("", each.replace("\\", "/")),
        }:
            for part in {form, *_SEVERAL.split(form)}:
                yield part
                yield _normal(part)


def _normal(path: str) -> str:
    names: list[str] = []
    for name in path.split("/"):
        if name == ".." and names and names[-1] != "..":
            names.pop()
        elif name not in ("", "."):
            names.append(name)
    root = "/" if path.startswith("/") else ""
    return root + "/".join(names)
