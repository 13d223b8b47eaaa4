"""What an action destroys, spends, publishes, grants or runs: found in its content, whatever it is called.

It changes what people are shown, not what is asked. What is not found here is not harmless for that.
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

from frontdesk.formats import commands, runnable, statements
from frontdesk.formats.actions import masked_name
from frontdesk.formats.commands import Simple
from frontdesk.formats.statements import Verb
from frontdesk.model import spellings

MOST_SHOWN = 5
MOST_DEEP = 3
MOST_READ = 64 * 1024
WORST = 5
"""From so bad on it is a danger; below, it is worth a look."""

_D = r"(?:^|\s)"
_GIVEN = r"(?:[+=-][rwxXst]*)*?[+=][rwxXst]*"
_RECURSIVE = rf"{_D}(?:-\w*[rR]|--recursive)"
DOES: tuple[tuple[str, str | tuple[str, ...], Verb], ...] = (
    (
        "rm",
        (_RECURSIVE, rf"{_D}(?:/|~|\.|\*|/\*|~/\*?|\./?\*?|\$HOME/?)(?:\s|$)"),
        Verb(10, "deletes everything", "Deletes everything in a whole tree"),
    ),
    (
        "rm",
        _RECURSIVE,
        Verb(9, "deletes folders", "Deletes folders with all that is in them"),
    ),
    ("rm|unlink|rmdir|del|erase", r"\S", Verb(6, "deletes files", "Deletes files")),
    ("shred|srm|wipefs|blkdiscard", "", Verb(9, "destroys", "Destroys what cannot be had back")),
    ("dd", r"\bof=/dev/", Verb(10, "overwrites a disk", "Overwrites a disk")),
    ("dd|truncate", r"\bof=|-s", Verb(6, "overwrites a file", "Overwrites a file")),
    (
        "mkfs|mke2fs|mkswap|fdisk|sfdisk|sgdisk|parted|format",
        "",
        Verb(9, "formats a disk", "Changes a disk as a whole"),
    ),
    ("find", r"-delete\b", Verb(8, "deletes files", "Deletes whatever is found")),
    (
        "git",
        (r"\bpush\b", rf"{_D}(?:-\w*f|--force|--mirror|--delete|-d\b|[+:])"),
        Verb(8, "overwrites elsewhere", "Overwrites or deletes what others have: a forced push"),
    ),
    ("git", r"\bpush\b", Verb(3, "publishes", "Sends commits to others")),
    *(
        ("git", patterns, Verb(7, "discards work", "Discards work that is nowhere else"))
        for patterns in (
            (r"\bfilter-(?:branch|repo)|\bstash (?:drop|clear)|\breflog expire",),
            (r"\breset\b", "--hard"),
            (r"\bclean\b", rf"{_D}-\w*f|--force"),
            (r"\bbranch\b", rf"{_D}-\w*D"),
            (r"\bcheckout\b", r"-f\b|--force|\s--?\s\."),
            (r"\bupdate-ref\b", rf"{_D}-d"),
        )
    ),
    ("kubectl|oc", r"\b(?:delete|drain)\b|--replicas[= ]0\b", Verb(8, "deletes", "Deletes in a cluster")),
    ("helm", r"\b(?:uninstall|delete)\b", Verb(8, "deletes", "Deletes in a cluster")),
    ("kubectl|oc|helm", r"\b(?:apply|install|upgrade|rollout)\b", Verb(3, "deploys", "Changes a cluster")),
    (
        "terraform|tofu|pulumi|cdk|terragrunt",
        r"\b(?:destroy|down)\b|-destroy\b",
        Verb(9, "destroys", "Destroys infrastructure"),
    ),
    ("terraform|tofu|terragrunt", r"\bapply\b", Verb(5, "changes much", "Changes infrastructure")),
    (
        "docker|podman|nerdctl",
        r"\b(?:prune|rmi?|kill)\b",
        Verb(6, "deletes", "Deletes containers, images or volumes"),
    ),
    (
        "docker|podman|nerdctl",
        (r"\bdown\b", rf"{_D}(?:-v|--volumes)"),
        Verb(6, "deletes", "Deletes containers, images or volumes"),
    ),
    (
        "docker|podman|nerdctl",
        r"--privileged|-v\s*/:|--volume[= ]/:|--pid[= ]host",
        Verb(8, "grants rights", "Gives a container the whole machine"),
    ),
    (
        "aws|gcloud|az|gsutil|flyctl|heroku|doctl|gh|s3cmd|mc|rclone",
        r"\b(?:rm|rb|del|delete|destroy|purge|terminate|remove)(?:-[\w-]+)?\b|:destroy|:reset",
        Verb(8, "deletes", "Deletes in a cloud"),
    ),
    ("rsync", r"--delete|--remove-source", Verb(6, "deletes files", "Deletes files that are elsewhere")),
    (
        "npm|pnpm|yarn|cargo|twine|poetry|uv|gem|flit|hatch|vsce|docker|podman",
        r"\b(?:publish|upload|unpublish|yank|push)\b",
        Verb(7, "publishes", "Publishes something for others"),
    ),
    ("gh", r"\brelease create\b", Verb(6, "publishes", "Publishes something")),
    ("gh", (r"\brepo\b", "public"), Verb(6, "publishes", "Publishes something")),
    (
        "chmod",
        r"\b[0-7]?[0-7]{2}[2367]\b|\b[4267][0-7]{3}\b"
        rf"|(?:^|[\s,])(?=[ug]*[oa])[ugoa]+{_GIVEN}w|(?:^|[\s,])[ugoa]*{_GIVEN}s",
        Verb(7, "grants rights", "Opens files to everybody, or lets them be run as their owner"),
    ),
    (
        "usermod|useradd|adduser|userdel|deluser|passwd|chpasswd|visudo|groupadd|gpasswd|setfacl|chown|icacls",
        "",
        Verb(6, "changes rights", "Changes who may do what"),
    ),
    ("iptables|nft|ufw|firewall-cmd|setenforce", "", Verb(6, "changes the firewall", "Changes a firewall")),
    (
        "systemctl|service|launchctl|rc-service|pm2|supervisorctl",
        r"\b(?:stop|disable|mask|kill|poweroff|reboot|halt|delete|bootout)\b",
        Verb(6, "stops a service", "Stops a service"),
    ),
    ("shutdown|reboot|halt|poweroff", "", Verb(7, "stops the machine", "Stops the machine")),
    ("kill|pkill|killall|taskkill", "", Verb(5, "ends programs", "Ends programs that run")),
    ("dropdb|dropuser", "", Verb(9, "drops", "Drops what a database holds")),
    ("mysqladmin|mariadb-admin", r"\b(?:drop|shutdown)\b", Verb(9, "drops or stops", "Ends a database")),
    (
        "redis-cli|valkey-cli|mongo|mongosh",
        r"(?i)\b(?:flushall|flushdb|shutdown|dropDatabase|drop|deleteMany)\b",
        Verb(9, "empties a database", "Empties or ends a database"),
    ),
    ("crontab|at|batch|schtasks", "", Verb(6, "runs later", "Has something run later, when nobody looks")),
    ("nc|ncat|socat|netcat", r"-\w*[ec]\b|exec:", Verb(9, "lets others in", "Gives others a shell")),
    ("history", "-c", Verb(5, "hides traces", "Forgets what was done")),
    (
        "mv|cp|ln|install|tee",
        r"(?:^|\s)/(?:etc|boot|usr|bin|sbin|lib)/|/\.ssh/|/dev/(?:sd|nvme|null)",
        Verb(6, "changes the system", "Changes files of the system"),
    ),
    ("sudo|doas|pkexec|su|runas", "", Verb(3, "as administrator", "Has the rights of an administrator")),
    (
        "stripe|paypal|bitcoin-cli|eth|solana|cast",
        r"\b(?:send|transfer|pay|payouts?|charges?|sendtoaddress|sendmany|refunds?|create)\b",
        Verb(8, "moves money", "Moves money"),
    ),
)
_DOES: dict[str, list[tuple[Sequence[re.Pattern[str]], Verb]]] = defaultdict(list)
for _programs, _patterns, _verb in DOES:
    for _program in _programs.split("|"):
        _needed = (_patterns,) if isinstance(_patterns, str) else _patterns
        _DOES[_program].append(([*map(re.compile, _needed)], _verb))
_WORD = re.compile(r"[A-Za-z][\w-]*")
_PROGRAMS = frozenset(_DOES) | commands.SHELLS
_PROGRAMS |= {"curl", "wget", "eval", "python", "python3", "perl", "ruby", "node", "php"}
_SHELL_SIGNS = re.compile(r"(?:^|\s)(?:--?\w|[~./]\S*/|/)|[|;&<>$`]|\w/\w")
_DOWNLOADS = re.compile(r"(?:\$\(|`|<\()\s*(?:sudo\s+)?(?:curl|wget|fetch)\b")
_DECODES = re.compile(r"\b(?:base64\s+(?:-d|-D|--decode)|xxd\s+-\w*r|openssl\s+enc\s+-d)\b")
_INTERPRETERS = commands.SHELLS | {"python", "python3", "perl", "ruby", "node", "php", "pwsh", "powershell"}
_TAKE_CODE = frozenset(("eval", "source", "."))
_CLIENTS = frozenset(
    ("psql", "mysql", "mariadb", "sqlite3", "sqlcmd", "cqlsh", "clickhouse-client", "duckdb")
)
_IN_CODE = re.compile(
    r"\b(?:rmtree|os\.remove|os\.unlink|unlinkSync|rmSync|rm_rf|remove_tree|FileUtils\.rm|Remove-Item"
    r"|File\.delete)\b"
)
_SYSTEM = re.compile(
    r"/dev/(?:sd|nvme|vd|mapper|disk)|/(?:etc|boot|usr|bin|sbin)/|\.ssh/|/\.?(?:bash|zsh|prof)"
)
_FORKS = re.compile(r":\s*\(\)\s*\{\s*:\s*\|\s*:")
_METHODS = {
    "delete": Verb(7, "deletes over HTTP", "Has another service delete something"),
    "put": Verb(3, "changes over HTTP", "Changes something at another service"),
    "patch": Verb(3, "changes over HTTP", "Changes something at another service"),
}
_MONEY = re.compile(
    r"(?i)/(?:transfers?|payouts?|payments?|charges?|refunds?|orders?|checkout|withdraw\w*)\b"
)
_AMOUNTS = frozenset(
    map(spellings.skeleton, ("amount", "price", "total", "sum", "amount_cents", "value_eur"))
)
_PAYEES = frozenset(
    map(
        spellings.skeleton,
        ("to", "recipient", "beneficiary", "payee", "to_account", "iban", "account", "wallet"),
    )
)
SPENDS = Verb(8, "moves money", "Moves money")
RUNS_DOWNLOAD = Verb(10, "runs what it downloads", "Runs what it downloads, which nobody has seen")
RUNS_DECODED = Verb(10, "runs what is encoded", "Runs what is encoded, which nobody can read")
RUNS_PIPED = Verb(6, "runs what is piped", "Runs what another command writes")
DELETES_IN_CODE = Verb(7, "deletes files", "Deletes files, in code of its own")
WRITES_SYSTEM = Verb(8, "changes the system", "Writes into files of the system")
UPLOADS = Verb(5, "sends files", "Sends a file to another service")
NOT_READ = Verb(5, "too long to check", "It is too long for us to look for dangers in all of it")
FORK_BOMB = Verb(10, "stops the machine", "Starts programs without end")


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


def of_commands(simples: Sequence[Simple]) -> Iterator[tuple[Verb, Simple]]:
    """What each command does that is worth a look."""
    download: Simple | None = None
    for simple in simples:
        for verb in _of_command(simple):
            yield verb, simple
        if simple.is_piped and simple.program in _INTERPRETERS and not _runs_file(simple):
            yield (RUNS_DOWNLOAD, download) if download else (RUNS_PIPED, simple)
        if simple.program in ("curl", "wget", "fetch"):
            download = simple


def _of_command(simple: Simple) -> Iterator[Verb]:
    arguments = " ".join(simple.arguments)
    # Of several that fit a program the worst is told.
    does = _DOES.get(simple.program.partition(".")[0], ())
    fitting = [verb for needed, verb in does if all(pattern.search(arguments) for pattern in needed)]
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


def _fetching(simple: Simple) -> Iterator[Verb]:
    words = simple.arguments
    said = {
        word.lower().removeprefix("-x").removeprefix("--request=").removeprefix("--method=") for word in words
    }
    yield from (verb for method, verb in _METHODS.items() if method in said)
    joined = " ".join(words)
    if re.search(
        r"(?:^|\s)(?:-T|--upload-file|--post-file)|(?:^|\s)(?:-d|--data|-F|--form)\S*(?: \S*)?@", joined
    ):
        yield UPLOADS
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
    yield from (verb for verb, _ in of_commands(commands.read(words)))
    is_code = runnable.names_code(name) and not runnable.names_arguments(name)
    for word in words:
        yield from _of_text(word, is_code=is_code)


def _of_text(text: str, *, is_code: bool) -> Iterator[Verb]:
    """``is_code``: it goes by a name that says so. Any other text has to look like a command."""
    if is_code or _may_be_command(text):
        simples = [*_read(text)]
        yield from (verb for verb, _ in of_commands(simples))
        if len(text) > MOST_READ:
            yield NOT_READ
        runs = any(simple.program in _INTERPRETERS or simple.program in _TAKE_CODE for simple in simples)
        if runs and _DECODES.search(text):
            yield RUNS_DECODED
        if runs and _DOWNLOADS.search(text):
            yield RUNS_DOWNLOAD
    if _FORKS.search(text):
        yield FORK_BOMB
    if _IN_CODE.search(text):
        yield DELETES_IN_CODE
    yield from statements.verbs_in(text)


def _read(text: str) -> Iterator[Simple]:
    """The commands of a text; of a very long one those at its beginning and at its end."""
    yield from commands.read_script(text[:MOST_READ])
    if len(text) > MOST_READ:
        yield from commands.read_script(text[MOST_READ:][-MOST_READ:])


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
    if not _AMOUNTS.isdisjoint(read) and not _PAYEES.isdisjoint(read):
        yield SPENDS
