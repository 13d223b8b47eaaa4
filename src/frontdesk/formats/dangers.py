"""What an action destroys, spends, publishes, grants or runs: found in its content, whatever it is called.

It changes what people are shown, not what is asked. What is not found here is not harmless for that.
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import chain
from typing import Any

from frontdesk.formats import commands, runnable, statements, verbs
from frontdesk.formats.actions import masked_name
from frontdesk.formats.commands import Simple
from frontdesk.formats.statements import Verb
from frontdesk.model import spellings

MOST_SHOWN = 5
MOST_DEEP = 3
MOST_READ = 64 * 1024
WORST = 5
"""From so bad on it is a danger; below, it is worth a look."""

_DOES: dict[str, list[tuple[Sequence[str], Verb]]] = defaultdict(list)
for _programs, _patterns, _verb in verbs.DOES:
    for _program in _programs.split("|"):
        _needed = (_patterns,) if isinstance(_patterns, str) else _patterns
        _DOES[_program].append((_needed, _verb))
_read = cache(re.compile)  # when a program is first met: there are hundreds
_NAME_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+")
_WORD = re.compile(r"[A-Za-z][\w-]*")
_PROGRAMS = frozenset(_DOES) | commands.SHELLS
_PROGRAMS |= {"curl", "wget", "eval", "python", "python3", "perl", "ruby", "node", "php"}
_SHELL_SIGNS = re.compile(r"(?:^|\s)(?:--?\w|[~./]\S*/|/)|[|;&<>$`]|\w/\w")
_DOWNLOADS = re.compile(r"(?:\$\(|`|<\()\s*(?:sudo\s+)?(?:curl|wget|fetch)\b")
_DECODES = re.compile(r"\b(?:base64\s+(?:-d|-D|--decode)|xxd\s+-\w*r|openssl\s+enc\s+-d)\b")
_INTERPRETERS = commands.SHELLS | {"python", "python3", "perl", "ruby", "node", "php", "pwsh", "powershell"}
_INTERPRETERS |= {"iex", "invoke-expression"}
_FETCHERS = frozenset(("curl", "wget", "fetch", "iwr", "irm", "invoke-webrequest", "invoke-restmethod"))
_SENDERS = frozenset(("curl", "wget", "nc", "ncat", "netcat", "socat", "scp", "sftp", "ftp", "rsync"))
_SECRETS = re.compile(
    r"\.ssh/|\.aws/|\.kube/config|\.gnupg/|\.netrc|\.pgpass|/etc/shadow|\bid_(?:rsa|ed25519|ecdsa)\b|\.env\b|\.pem\b"
)
_TAKE_CODE = frozenset(("eval", "source", "."))
_CLIENTS = frozenset(
    ("psql", "mysql", "mariadb", "sqlite3", "sqlcmd", "cqlsh", "clickhouse-client", "duckdb")
)
_IN_CODE: tuple[tuple[re.Pattern[str], Verb], ...] = (
    (
        re.compile(
            r"\b(?:rmtree|os\.remove|os\.unlink|removedirs|unlinkSync|rmSync|rm_rf|remove_tree|FileUtils\.rm"
            r"|Remove-Item|File\.delete)\b|\bfs\.(?:promises\.)?(?:rm|rmdir|unlink)\(|\)\.unlink\("
        ),
        Verb(7, "deletes files", "Deletes files, in code of its own"),
    ),
    (
        re.compile(r"\b(?:requests|httpx|axios|session|client)\.delete\("),
        Verb(7, "deletes over HTTP", "Has another service delete something"),
    ),
    (
        re.compile(r"\b(?:exec|eval)\s*\(.{0,200}\b(?:b64decode|fromhex|atob|decompress|unhexlify)\b"),
        Verb(10, "runs what is encoded", "Runs what is encoded, which nobody can read"),
    ),
    (
        re.compile(r"\b(?:exec|eval)\s*\(.{0,200}\b(?:urlopen|urlretrieve|requests\.get|httpx\.get|fetch)\b"),
        Verb(10, "runs what it downloads", "Runs what it downloads, which nobody has seen"),
    ),
    (
        re.compile(r"\bopen\(\s*['\"]/(?:etc|boot|usr|bin|sbin|dev)/[^)]*,\s*(?:mode=)?['\"][wax]"),
        Verb(8, "changes the system", "Writes into files of the system"),
    ),
    (
        re.compile(r"\b(?:LD_PRELOAD|DYLD_INSERT_LIBRARIES)="),
        Verb(7, "runs other code", "Has other code run inside a program"),
    ),
    (re.compile(r"/dev/(?:tcp|udp)/"), Verb(9, "lets others in", "Connects a shell to another machine")),
)
# In the languages that agents write: what starts a command, and the texts that it is given.
_STARTS = re.compile(
    r"\b(?:os\.(?:system|popen)|subprocess\.\w+|exec(?:Sync|File|FileSync)|spawn(?:Sync)?|shell_exec|system|popen)"
    r"\s*\(\s*(?P<given>\[[^\]]{0,2000}\]|(?P<sign>['\"`])(?:\\.|(?!(?P=sign)).){0,4000})"
)
_LITERAL = re.compile(r"(?P<sign>['\"`])(?P<text>(?:\\.|(?!(?P=sign)).)*)(?:(?P=sign)|$)")
_SYSTEM = re.compile(
    r"/dev/(?:sd|nvme|vd|mapper|disk)|/(?:etc|boot|usr|bin|sbin|proc/sys|sys)/|/proc/sysrq|\.ssh/"
    r"|/\.?(?:bash|zsh|prof)|^[A-Za-z]:[\\/]+Windows\b"
)
_RUN_LATER = re.compile(
    r"(?:^|/)(?:\.git/hooks/|\.github/workflows/|\.gitlab-ci\.yml$|cron[\w.]*/|systemd/|LaunchAgents/)"
    r"|(?:^|[/\\])(?:\.?(?:bashrc|zshrc|profile|bash_profile|zprofile)|Startup[\\/].*)$"
)
_FORKS = re.compile(r":\s*\(\)\s*\{\s*:\s*\|\s*:")
_SENT_FILE = re.compile(
    r"(?:^|\s)(?:-T|--upload-file|--post-file|(?:-d|--data\S*)[= ]?@(?P<body>[^/~\s]+\.json(?:\s|$))"
    r"|(?:-d|--data|-F|--form)\S*(?: \S*)?@)"
)
_METHODS = {
    "delete": Verb(7, "deletes over HTTP", "Has another service delete something"),
    "put": Verb(3, "changes over HTTP", "Changes something at another service"),
    "patch": Verb(3, "changes over HTTP", "Changes something at another service"),
}
_MONEY = re.compile(
    r"(?i)/(?:transfers?|payouts?|payments?|charges?|refunds?|orders?|checkout|withdraw\w*)\b"
    r"(?!/(?:search|list|query|preview|estimate|export)\b)"
)
_AMOUNT, _FILE_MODE = spellings.skeleton("amount"), spellings.skeleton("mode")
_SUMS, _PRICES, _PAYEES, _PLACES, _RIGHTS, _HOLDERS, _CONTENTS, _PATHS, _TOOLS = (
    frozenset(map(spellings.skeleton, names.split()))
    for names in (
        "sum value_eur",
        "price total",
        "recipient beneficiary payee to_account iban wallet",
        "to account address",
        "role roles permission permissions policy grant",
        "user principal member account group",
        "content contents text data body diff patch new_string",
        "path file filename file_path",
        "tool tool_name function operation",
    )
)
_OPEN_MODE = re.compile(r"(?:0o?)?[0-7]?[0-7]{2}[2367]")
SPENDS = Verb(8, "moves money", "Moves money")
RUNS_DOWNLOAD = Verb(10, "runs what it downloads", "Runs what it downloads, which nobody has seen")
RUNS_DECODED = Verb(10, "runs what is encoded", "Runs what is encoded, which nobody can read")
RUNS_PIPED = Verb(6, "runs what is piped", "Runs what another command writes")
RUNS_LATER = Verb(7, "runs later", "Changes what is run by itself later, when nobody looks")
GRANTS = Verb(7, "grants rights", "Gives rights to somebody")
OPENS = Verb(7, "grants rights", "Opens files to everybody")
EMPTIES = Verb(6, "overwrites a file", "Empties a file")
SENDS_SECRETS = Verb(9, "sends secrets", "Sends keys or passwords to another machine")
POSTS_FILE = Verb(4, "sends files", "Sends a file to another service")
WRITES_SYSTEM = Verb(8, "changes the system", "Writes into files of the system")
UPLOADS = Verb(5, "sends files", "Sends a file to another service")
OTHER_PROGRAM = Verb(6, "another program", "Runs another program than the one that it names")
ELSEWHERE = Verb(4, "program elsewhere", "Runs a program that is not where those of the system are")
LOADS_CODE = Verb(7, "loads other code", "Has programs load or run what a variable names")
OTHER_PATH = Verb(4, "other programs", "Has programs looked for in another place")
MADE_UP = Verb(6, "program made up", "Starts a program whose name is put together while it runs")
FROM_VARIABLE = Verb(4, "program in a variable", "Starts a program that a variable names")
NOT_READ = Verb(5, "too long to check", "It is too long for us to look for dangers in all of it")
FORK_BOMB = Verb(10, "stops the machine", "Starts programs without end")


# What has a program load, or run, something besides itself.
_LOADERS = (
    r"(?:LD_(?:PRELOAD|AUDIT|LIBRARY_PATH)|DYLD_[A-Z_]+|BASH_ENV|PROMPT_COMMAND|PYTHON(?:PATH|STARTUP|HOME)"
    r"|PERL5?(?:OPT|LIB|DB)|RUBY(?:OPT|LIB)|NODE_(?:OPTIONS|PATH)|JAVA_TOOL_OPTIONS|LESSOPEN|PAGER|EDITOR|VISUAL"
    r"|GIT_(?:SSH|SSH_COMMAND|EDITOR|PAGER|ASKPASS|EXTERNAL_DIFF|CONFIG\w*))"
)
_LOADER = re.compile(_LOADERS)
_LOADS = re.compile(rf"(?<![\w.-]){_LOADERS}=[^\s;&|]")
_OTHER_PATH = re.compile(r"(?<![\w.-])PATH=(?![\"']?\$\{?PATH)[^\s;&|]")

_VARIABLE = re.compile(r"(?:\$\w+|\$\{\w+\})\Z")
# A substitution, a default, or a pattern that a shell fills in.
_MADE_UP = re.compile(r"\$(?:\(|\{\w*+[^\w}])|`|\w[\w.-]*[*?\[][\w.*?\]-]*\Z|\[\w|\{[\w.-]+,")
_NAMES = ((_VARIABLE, FROM_VARIABLE), (_MADE_UP, MADE_UP))
_IN_TEXT = ((_LOADS, LOADS_CODE), (_OTHER_PATH, OTHER_PATH), (_FORKS, FORK_BOMB))


class Danger(Verb):
    """What was found, and where."""

    @property
    def is_danger(self) -> bool:
        return self.badness >= WORST


_METHOD, _URL, _URI = map(spellings.skeleton, ("method", "url", "uri"))


def found_in(details: Mapping[str, Any]) -> list[Danger]:
    """The worst first; the same thing is said once."""
    worst: dict[str, Danger] = {}
    for verb, place in _walk(details, ()):
        if verb.label in worst and worst[verb.label].badness >= verb.badness:
            continue
        where = ".".join(map(masked_name, place[:MOST_DEEP])) + (".…" if len(place) > MOST_DEEP else "")
        told = f"{verb.text} (in {where})." if where else f"{verb.text}."
        worst[verb.label] = Danger(verb.badness, verb.label, told)
    return sorted(worst.values(), key=lambda danger: -danger.badness)[:MOST_SHOWN]


def of_name(action: str) -> Danger | None:
    """What the name of an action says that it does."""
    words = [word.lower() for word in _NAME_WORD.findall(action)]
    if not words or words[0] in verbs.LOOKS:
        return None
    found = max((verbs.NAMED[word] for word in words if word in verbs.NAMED), default=None)
    return Danger(found.badness, found.label, f"{found.text}.") if found else None


def of_commands(simples: Sequence[Simple]) -> Iterator[tuple[Verb, Simple]]:
    """What each command does that is worth a look."""
    download: Simple | None = None
    fetched: dict[str, Simple] = {}
    reads_secrets = False
    for simple in simples:
        for verb in _of_command(simple):
            yield verb, simple
        if simple.is_piped and simple.program in _INTERPRETERS and not _runs_file(simple):
            yield (RUNS_DOWNLOAD, download) if download else (RUNS_PIPED, simple)
        runs = simple.words if simple.program in _INTERPRETERS | _TAKE_CODE else simple.words[:1]
        if source := next((fetched[name] for word in runs if (name := _base(word.text)) in fetched), None):
            yield RUNS_DOWNLOAD, source
        reads_secrets = (simple.is_piped and reads_secrets) or any(map(_SECRETS.search, simple.arguments))
        if simple.program in _SENDERS and (reads_secrets or simple.is_piped) and not _saves_only(simple):
            yield (SENDS_SECRETS if reads_secrets else UPLOADS), simple
        if simple.program in _FETCHERS:
            download = simple
            fetched |= {name: simple for word in simple.arguments if (name := _base(word))}


def _base(word: str) -> str:
    """The name of a file, of a path or an address."""
    name = word.rstrip("/").rpartition("/")[2]
    return "" if name.startswith("-") else name


def _saves_only(simple: Simple) -> bool:
    """Whether it gets something, and sends nothing but what it is called with."""
    sends = re.compile(r"-T|--upload-file|--post-\S+|-d|--data\S*|-F\S*|--form\S*")
    return simple.program in ("curl", "wget") and not any(map(sends.fullmatch, simple.arguments))


def _of_command(simple: Simple) -> Iterator[Verb]:
    arguments = " ".join(simple.arguments)
    if simple.arguments[-1:] == ["--help"] and len(simple.arguments) <= 1 + (
        simple.program in commands.SUBCOMMANDS
    ):
        return
    yield from (verb for pattern, verb in _NAMES if pattern.match(simple.program))
    # Of several that fit a program the worst is told.
    does = _DOES.get(simple.program.partition(".")[0], ())
    fitting = [verb for needed, verb in does if all(_read(each).search(arguments) for each in needed)]
    if fitting:
        yield max(fitting)
    if (simple.program in _INTERPRETERS or simple.program in _TAKE_CODE) and _DOWNLOADS.search(arguments):
        yield RUNS_DOWNLOAD
    if simple.program in _CLIENTS:
        yield from chain.from_iterable(map(statements.verbs_in, simple.arguments))
    if simple.program in ("curl", "wget", "http", "https", "xh"):
        yield from _fetching(simple)
    if any(_SYSTEM.search(word.text) for word in simple.targets):
        yield WRITES_SYSTEM
    elif simple.targets and (simple.program in ("", ":", "true") or arguments == "/dev/null"):
        yield EMPTIES
    if simple.program in ("powershell", "pwsh") and re.search(r"(?i)(?:^|\s)-e(?:nc|c)?\w*\s", arguments):
        yield RUNS_DECODED


def _fetching(simple: Simple) -> Iterator[Verb]:
    words = simple.arguments
    said = {
        word.lower().removeprefix("-x").removeprefix("--request=").removeprefix("--method=") for word in words
    }
    yield from (verb for method, verb in _METHODS.items() if method in said)
    joined = " ".join(words)
    if found := _SENT_FILE.search(joined):
        yield POSTS_FILE if found["body"] else UPLOADS
    posts = "post" in said or re.search(r"(?:^|\s)(?:-d|--data|-F|--form)", joined)
    if posts and _MONEY.search(joined):
        yield SPENDS


def _runs_file(simple: Simple) -> bool:
    """Whether an interpreter is given a file or a text to run, so that what is piped is its input."""
    return any(not word.startswith("-") or word in ("-c", "-e", "-m") for word in simple.arguments[:1])


def _walk(value: Any, place: tuple[str, ...], name: str = "") -> Iterator[tuple[Verb, tuple[str, ...]]]:
    match value:
        case Mapping():
            yield from ((verb, place) for verb in _of_object(value))
            for key, each in value.items():
                yield from _walk(each, (*place, key), key)
        case list() if value and all(isinstance(each, str) for each in value):
            yield from ((verb, place) for verb in _of_list(value, name))
        case list():
            for each in value:
                yield from _walk(each, place, name)
        case str():
            yield from ((verb, place) for verb in _of_text(value, is_code=runnable.names_code(name)))


def _of_list(words: Sequence[str], name: str) -> Iterator[Verb]:
    """Arguments of a command, or texts of which each may be one."""
    yield from (verb for verb, _ in of_commands(commands.read([word[:MOST_READ] for word in words])))
    if any(len(word) > MOST_READ for word in words):
        yield NOT_READ
        yield from (verb for verb, _ in of_commands(commands.read([word[-MOST_READ:] for word in words])))
    is_code = runnable.names_code(name) and not runnable.names_arguments(name)
    for word in words:
        yield from _of_text(word, is_code=is_code)


def _of_text(text: str, *, is_code: bool) -> Iterator[Verb]:
    """``is_code``: it goes by a name that says so. Any other text has to look like a command."""
    if is_code or _may_be_command(text):
        simples = read_code(text)
        yield from (verb for verb, _ in of_commands(simples))
        if len(text) > MOST_READ:
            yield NOT_READ
        runs = any(simple.program in _INTERPRETERS or simple.program in _TAKE_CODE for simple in simples)
        if runs and _DECODES.search(text):
            yield RUNS_DECODED
        if runs and _DOWNLOADS.search(text):
            yield RUNS_DOWNLOAD
    for pattern, verb in (*_IN_TEXT, *_IN_CODE):
        if pattern.search(text):
            yield verb
    for started in _STARTS.finditer(text):
        words = [found["text"] for found in _LITERAL.finditer(started["given"])]
        read = commands.read(words) if started["given"].startswith("[") else commands.read_script(words[0])
        yield from (verb for verb, _ in of_commands(read))
    yield from statements.verbs_in(text)


def read_code(text: str) -> list[Simple]:
    """The commands of a text; of a very long one those at its beginning and at its end."""
    end = max(MOST_READ, len(text) - MOST_READ)
    last = (commands.moved(each, 0, end) for each in commands.read_script(text[end:]))
    return [*commands.read_script(text[:MOST_READ]), *last]


def _may_be_command(text: str) -> bool:
    if not _SHELL_SIGNS.search(text):
        return False
    return bool(_SYSTEM.search(text)) or not _PROGRAMS.isdisjoint(map(str.lower, _WORD.findall(text)))


def _of_object(value: Mapping[str, Any]) -> Iterator[Verb]:
    """What several arguments say together: a method and an address, an amount and who gets it."""
    read = {spellings.skeleton(name): each for name, each in value.items()}
    method = read.get(_METHOD)
    url = read.get(_URL) or read.get(_URI)
    if isinstance(method, str):
        if method.strip().lower() in _METHODS and url is not None:
            yield _METHODS[method.strip().lower()]
        if isinstance(url, str) and method.strip().lower() in ("post", "put") and _MONEY.search(url):
            yield SPENDS
    if any(each and isinstance(each, str) and _LOADER.fullmatch(name) for name, each in value.items()):
        yield LOADS_CODE
    file = runnable.file_in(value)
    if file is not None:
        yield from _of_file(file, value[runnable.ARGV])
    yield from _of_input(value)
    for tool in (read[name] for name in _TOOLS if isinstance(read.get(name), str)):
        if named := of_name(tool):
            yield Verb(named.badness, named.label, named.text.removesuffix("."))
    yield from _of_money(read)
    yield from _of_files(read)
    if not _RIGHTS.isdisjoint(read) and not _HOLDERS.isdisjoint(read):
        yield GRANTS


def _of_file(file: str, argv: Sequence[str]) -> Iterator[Verb]:
    """What a command does by the file that is run, whatever it is called."""
    yield from (verb for verb, _ in of_commands(commands.read([file, *argv[1:]])))
    if not runnable.goes_by(file, argv[0]):
        yield OTHER_PROGRAM
    elif not runnable.is_usual(file, argv[0]):
        yield ELSEWHERE


def _of_input(value: Mapping[str, Any]) -> Iterator[Verb]:
    """What a shell is given to read, which it runs."""
    argv, given = value.get(runnable.ARGV), value.get("stdin")
    text = given.get("text") if isinstance(given, Mapping) else given
    if isinstance(argv, list) and isinstance(text, str) and all(isinstance(each, str) for each in argv):
        started = commands.read([runnable.file_in(value) or "", *argv[1:]]) + commands.read(argv)
        if any(simple.program in commands.SHELLS for simple in started):
            yield from _of_text(text, is_code=True)


def _of_money(read: Mapping[str, Any]) -> Iterator[Verb]:
    """A sum with anybody who gets it, or a price with somebody who surely does."""
    pays = not _SUMS.isdisjoint(read) or any(name.startswith(_AMOUNT) for name in read)
    names_payee = not _PAYEES.isdisjoint(read)
    if (pays and (names_payee or not _PLACES.isdisjoint(read))) or (
        names_payee and not _PRICES.isdisjoint(read)
    ):
        yield SPENDS


def _of_files(read: Mapping[str, Any]) -> Iterator[Verb]:
    """What is written into a file, or who may use it."""
    paths = [value for name, value in read.items() if name in _PATHS and isinstance(value, str)]
    mode = read.get(_FILE_MODE)
    if paths and isinstance(mode, str) and _OPEN_MODE.fullmatch(mode):
        yield OPENS
    if _CONTENTS.isdisjoint(read):
        return
    for path in paths:
        if _RUN_LATER.search(path):
            yield RUNS_LATER
        elif _SYSTEM.search(path):
            yield WRITES_SYSTEM
