"""Commands as a shell would read them: lines taken apart, through whatever starts another command.

Close enough to see what a command does, and never run by anybody.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import dropwhile, takewhile
from typing import NamedTuple

MOST_DEEP = 6
"""Commands within commands, so many times."""
MOST_FLAGS = 8
"""So many of those that come first say what is done."""

_TOKEN = re.compile(
    r"(?P<blank>[ \t]+|\\\n)"
    r"|(?P<end>\n|;;?|&&|\|\||\|&?|&(?!>)|[()])"
    r"|(?P<redirect>[0-9]?(?:<<<|<<-?|>>|>\||[<>]&?)|&>>?)"
    r"|(?P<comment>(?<![^\s;&|()])#[^\n]*)"
    r"|(?P<single>\$?'[^']*'?)"
    r"|(?P<double>\$?\"(?:[^\"\\]|\\.)*\"?)"
    r"|(?P<inner>\$\((?!\())"
    r"|(?P<tick>`[^`]*`?)"
    r"|(?P<escaped>\\.)"
    r"|(?P<plain>[^\s'\"\\$`;&|()<>]+|.)",
    re.DOTALL,
)
_NESTED = re.compile(r"\$\((?!\()|`")
_BLANK = re.compile(r"\$\{IFS\}|\$IFS\b")
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*\+?=")
_BEFORE_COMMAND = frozenset({"then", "do", "else", "elif", "if", "while", "until", "!", "{", "time"})
_FLAGS = re.compile(r"-[A-Za-z]{1,4}")
_SHELL_CODE = re.compile(r"-[a-zA-Z]*c[a-zA-Z]*")
SHELLS = frozenset({"sh", "bash", "zsh", "dash", "ksh", "ash", "fish"})

_VALUED: Mapping[str, str] = {
    "sudo": "-u -g -h -p -C -r -t -T -U -D --user --group --host --prompt --chdir",
    "doas": "-u -C",
    "env": "-u -C --unset --chdir",
    "nice": "-n --adjustment",
    "ionice": "-c -n -p",
    "timeout": "-k -s --kill-after --signal",
    "stdbuf": "-i -o -e",
    "xargs": "-a -d -E -I -L -n -P -s --max-args --max-procs --replace --delimiter",
    "nohup": "",
    "setsid": "",
    "time": "-f -o",
    "exec": "-a",
    "command": "",
    "builtin": "",
    "busybox": "",
    "chroot": "--userspec --groups",
    "parallel": "-j --jobs",
    "watch": "-n --interval",
    "ssh": "-b -c -D -E -e -F -I -i -J -L -l -m -O -o -p -Q -R -S -W -w",
    "eval": "",
    "npx": "-p --package",
    "bunx": "",
    "uvx": "--from --with",
    "flock": "-w -E --timeout --conflict-exit-code",
    "strace": "-o -e -p -s -u",
    "ltrace": "-o -e -p -s -u",
    "systemd-run": "-u -p --unit --property --uid --gid --slice",
    "runuser": "-u -g",
    "setpriv": "--reuid --regid",
    "unshare": "-S -G",
    "nsenter": "-t --target",
    "taskset": "",
    "chrt": "",
    "gosu": "",
    "su-exec": "",
    **dict.fromkeys(
        ("coproc", "fakeroot", "unbuffer", "firejail", "torsocks", "proxychains", "caffeinate"), ""
    ),
}
"""What starts another command, with those of its options that a value follows."""
_RUNNERS = frozenset(("bundle", "poetry", "uv", "pipenv", "pdm", "hatch"))
"""What starts another command when told to run it."""
_OPERANDS_FIRST = dict.fromkeys(
    ("timeout", "chroot", "ssh", "flock", "taskset", "chrt", "gosu", "su-exec"), 1
)
_JOINS = frozenset(("ssh", "eval", "watch"))
"""What puts its words together, and has a shell read them."""


class ShellWord(NamedTuple):
    """What a program gets, and where it stands: in which argument, and there from where to where."""

    text: str
    item: int
    start: int
    end: int


NOWHERE = ShellWord("", 0, 0, 0)
"""The place of what stands in a place that is not told."""


class Simple(NamedTuple):
    """One program with its arguments."""

    words: tuple[ShellWord, ...]
    is_piped: bool = False
    """Whether it reads what the one before writes."""
    targets: tuple[ShellWord, ...] = ()
    """The files that its output is written to."""

    @property
    def program(self) -> str:
        return program_of(self.words[0].text) if self.words else ""

    @property
    def arguments(self) -> list[str]:
        return [word.text for word in self.words[1:]]


def program_of(word: str) -> str:
    """The name of a program, wherever it lies."""
    return word.replace("\\", "/").rpartition("/")[2].lower().removesuffix(".exe")


SUBCOMMANDS: Mapping[str, int] = {
    **dict.fromkeys(
        ("git", "docker", "podman", "gsutil", "terraform", "tofu", "helm", "systemctl", "npm"), 1
    ),
    **dict.fromkeys(
        ("pnpm", "yarn", "pip", "pip3", "uv", "cargo", "apt", "apt-get", "dnf", "yum", "brew"), 1
    ),
    **dict.fromkeys(("pulumi", "heroku", "zfs", "zpool", "redis-cli", "twine", "launchctl", "service"), 1),
    **dict.fromkeys(("kubectl", "oc", "aws", "az", "gh", "ip", "flyctl"), 2),
    "gcloud": 3,
}
"""Of programs that do many things, how many words say which."""
_UNTELLING = frozenset(
    ("cd", "echo", "set", "export", "true", "sleep", "test", "[", "printf", "mkdir", "source", ".")
)


def telling(simples: Sequence[Simple]) -> Simple | None:
    """The command that says most of what is done: not one that only starts another, or prepares it."""
    outer = SHELLS | _VALUED.keys() | {"su"}
    own = [each for each in simples if each.words and each.program not in outer]
    chosen = [each for each in own if each.program not in _UNTELLING]
    return next(iter((*chosen, *own, *simples)), None)


def verb_and_target(simple: Simple) -> tuple[Sequence[ShellWord], Sequence[ShellWord]]:
    """The words that say what is done, and to what."""
    plain = [word for word in simple.words[1:] if not word.text.startswith("-") and word.text != ";"]
    count = SUBCOMMANDS.get(simple.program, 0)
    verbs = [*simple.words[:1], *plain[:count]]
    if not count:
        verbs += takewhile(lambda word: _FLAGS.fullmatch(word.text), simple.words[1 : 1 + MOST_FLAGS])
    return verbs, (*plain[count:], *simple.targets)


def read(argv: Sequence[str]) -> list[Simple]:
    """The commands that a list of arguments starts, the outer ones first."""
    words = tuple(ShellWord(text, item, 0, len(text)) for item, text in enumerate(argv))
    return [*_started(Simple(words), 0)]


def read_script(text: str) -> list[Simple]:
    """The commands in a text that a shell runs, in their order."""
    return [*_scripted(text, None, 0)]


def _scripted(text: str, within: ShellWord | None, depth: int) -> Iterator[Simple]:
    """``within``: the word that the text came from, when it does not stand there as it is."""
    if depth > MOST_DEEP:
        return
    spaced = _BLANK.sub(lambda found: " " * len(found[0]), text)
    for simple, nested in _Lexer(spaced, within).simples():
        yield from _started(simple, depth)
        for inner in nested:
            yield from _scripted(inner, within or NOWHERE, depth + 1)


def _started(simple: Simple, depth: int) -> Iterator[Simple]:
    """The command, and those that it starts."""
    words = tuple(dropwhile(_is_before_command, simple.words))
    if not words:
        if simple.targets:
            yield simple
        return
    simple = simple._replace(words=words)
    yield simple
    if depth > MOST_DEEP:
        return
    yield from _given(simple, depth)


def _given(simple: Simple, depth: int) -> Iterator[Simple]:
    """The commands that one is given to start."""
    words, program = simple.words, simple.program
    first = simple.arguments[:1]
    if program in SHELLS or program == "su":
        yield from _shell(simple, depth)
    elif program in _JOINS:
        yield from _joined(_rest(simple), depth)
    elif program in _VALUED:
        yield from _started(simple._replace(words=_rest(simple)), depth + 1)
    elif program == "find":
        yield from _found(simple, depth)
    elif program in _RUNNERS and first in (["run"], ["exec"]):
        yield from _started(simple._replace(words=words[2:]), depth + 1)
    elif first in (["manage.py"], ["artisan"]):
        yield from _started(simple._replace(words=words[1:]), depth + 1)
    elif program in ("cmd", "powershell", "pwsh"):
        yield from _windows(simple, depth)
    elif "--" in simple.arguments and {"exec", "run"} & {*simple.arguments}:
        start = simple.arguments.index("--") + 2
        yield from _started(simple._replace(words=words[start:]), depth + 1)


def _is_before_command(word: ShellWord) -> bool:
    return word.text in _BEFORE_COMMAND or bool(_ASSIGNMENT.match(word.text))


def _joined(words: Sequence[ShellWord], depth: int) -> Iterator[Simple]:
    """What a shell reads that is given these words as one text."""
    if words:
        place = ShellWord("", words[0].item, words[0].start, words[-1].end)
        alone = len(words) == 1 and words[0].end - words[0].start == len(words[0].text)
        for each in _scripted(" ".join(word.text for word in words), None if alone else place, depth + 1):
            yield moved(each, words[0].item, words[0].start) if alone else each


def _rest(simple: Simple) -> tuple[ShellWord, ...]:
    """The words of the command that this one starts."""
    valued, operands = _VALUED[simple.program].split(), _OPERANDS_FIRST.get(simple.program, 0)
    place = 1
    while place < len(simple.words):
        text = simple.words[place].text
        if text in valued:
            place += 2
        elif text.startswith("-") or _ASSIGNMENT.match(text):
            place += 1
        elif operands:
            operands, place = operands - 1, place + 1
        else:
            break
    return simple.words[place:]


def _shell(simple: Simple, depth: int) -> Iterator[Simple]:
    """What a shell is given to run."""
    takes_code = False
    for word in simple.words[1:]:
        if _SHELL_CODE.fullmatch(word.text) or word.text == "--command":
            takes_code = True
        elif takes_code and not word.text.startswith("-"):
            # As it stands there, or in quotes that nothing in it has to be marked for.
            shift = {0: word.start, 2: word.start + 1}.get(word.end - word.start - len(word.text))
            for each in _scripted(word.text, word if shift is None else None, depth + 1):
                yield each if shift is None else moved(each, word.item, shift)
            return


def _windows(simple: Simple, depth: int) -> Iterator[Simple]:
    """What a shell of Windows is given to run: all that follows."""
    for place, word in enumerate(simple.words[1:], 2):
        if word.text.lower() in ("/c", "/k", "-c", "-command"):
            yield from _joined(simple.words[place:], depth)
            return


def moved(simple: Simple, item: int, shift: int) -> Simple:
    """The same, in the place of an argument where its text stands."""
    words, targets = (
        tuple(
            word if word.end == 0 else ShellWord(word.text, item, word.start + shift, word.end + shift)
            for word in some
        )
        for some in (simple.words, simple.targets)
    )
    return simple._replace(words=words, targets=targets)


def _found(simple: Simple, depth: int) -> Iterator[Simple]:
    """What ``find`` runs for each file."""
    words = iter(simple.words)
    for word in words:
        if word.text in ("-exec", "-execdir", "-ok", "-okdir"):
            started = tuple(takewhile(lambda each: each.text not in (";", "+"), words))
            yield from _started(Simple(started), depth + 1)


class _Lexer:
    """Takes one text apart."""

    def __init__(self, text: str, within: ShellWord | None) -> None:
        self._text = text
        self._within = within
        self._clear()
        self._is_piped = False

    def _clear(self) -> None:
        self._words: list[ShellWord] = []
        self._targets: list[ShellWord] = []
        self._nested: list[str] = []
        self._parts: list[str] = []
        self._start: int | None = None
        self._redirect = ""

    def simples(self) -> Iterator[tuple[Simple, list[str]]]:
        position = 0
        while found := _TOKEN.match(self._text, position):
            position = found.end()
            match found.lastgroup:
                case "blank" | "comment":
                    self._end_word(found.start())
                case "end":
                    self._end_word(found.start())
                    yield from self._ended()
                    self._is_piped = found[0] in ("|", "|&")
                case "redirect":
                    self._end_word(found.start())
                    self._redirect = found[0]
                case "inner":
                    position = _closing(self._text, position)
                    self._nested.append(self._text[found.end() : position - 1])
                    self._add(found.start(), self._text[found.start() : position])
                case _:
                    self._add(found.start(), self._unquoted(found))
        self._end_word(len(self._text))
        yield from self._ended()

    def _ended(self) -> Iterator[tuple[Simple, list[str]]]:
        if self._words or self._targets or self._nested:
            yield Simple(tuple(self._words), self._is_piped, tuple(self._targets)), self._nested
        self._clear()

    def _add(self, start: int, text: str) -> None:
        if self._start is None:
            self._start = start
        self._parts.append(text)

    def _unquoted(self, found: re.Match[str]) -> str:
        text = found[0]
        match found.lastgroup:
            case "single":
                body = text.removeprefix("$")[1:]
                return _plain(body.removesuffix("'")) if text[0] == "$" else body.removesuffix("'")
            case "double":
                body = text.removeprefix("$")[1:].removesuffix('"')
                self._nested += _within_quotes(body)
                return re.sub(r"\\([\"\\$`\n])", r"\1", body)
            case "tick":
                self._nested.append(text.strip("`"))
                return text
            case "escaped":
                return text[1:]
        return text

    def _end_word(self, end: int) -> None:
        if self._start is None:
            return
        text, within = "".join(self._parts), self._within
        word = within._replace(text=text) if within else ShellWord(text, 0, self._start, end)
        if not self._redirect:
            self._words.append(word)
        elif ">" in self._redirect and not self._redirect.endswith("&"):
            self._targets.append(word)
        self._parts, self._start, self._redirect = [], None, ""


def _plain(text: str) -> str:
    """What stands in ``$'…'``."""
    return re.sub(
        r"\\(?:x([0-9a-fA-F]{1,2})|([0-7]{1,3})|(.))",
        lambda found: chr(int(found[1], 16)) if found[1] else chr(int(found[2], 8)) if found[2] else found[3],
        text,
    )


def _closing(text: str, position: int) -> int:
    """Behind the parenthesis that closes the one before this place."""
    depth = 1
    for found in re.compile(r"\\.|'[^']*'|[()]", re.DOTALL).finditer(text, position):
        depth += {"(": 1, ")": -1}.get(found[0], 0)
        if not depth:
            return found.end()
    return len(text) + 1


def _within_quotes(text: str) -> Iterator[str]:
    """The commands that stand in double quotes."""
    position = 0
    while found := _NESTED.search(text, position):
        if found[0] == "`":
            end = text.find("`", found.end())
            position = (end if end >= 0 else len(text)) + 1
        else:
            position = _closing(text, found.end())
        yield text[found.end() : position - 1]
