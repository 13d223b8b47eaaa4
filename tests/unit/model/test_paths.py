"""Rules about paths: one that allows fits plain ones, one that denies is not got around by an odd one."""

import fnmatch
import ntpath
import posixpath
import random
import re
import time
import unicodedata
import urllib.parse
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta

import pytest

from frontdesk.model import rules
from frontdesk.model.confirmations import Mode, Submission
from frontdesk.model.rules import Comparison, Condition, Effect, Rule
from tests import counts

NOW = datetime(2026, 3, 1, tzinfo=UTC)
NAMES = (
    "tmp",
    "srv",
    "home",
    "ann",
    "data",
    "Reports",
    "2026",
    "v1.2",
    "a_b",
    "x-y",
    "\u0434\u0430\u043d\u043d\u044b\u0435",
    "caf\u00e9",
    "date=2026-01-01",
)
ENDS = ("passwd", "a.txt", "report.pdf", "x")
STARS = ("*", "?*", "**", "*.txt", "[a-z]*", "*/*")


def rule(
    effect: Effect, pattern: str | None, test: Comparison = Comparison.LIKE, argument: str = "path"
) -> Rule:
    where = () if pattern is None else (Condition(argument=argument, test=test, value=pattern),)
    return Rule(
        id=f"{effect}:{pattern}",
        effect=effect,
        action="remove",
        conditions=where,
        expires_at=NOW + timedelta(1),
    )


def decide(path: str, *known: Rule) -> Effect:
    asked = Submission(
        action="remove", description="Please", payload=b"{}", digest="d" * 64, requester="token:a"
    )
    details = {"path": path, "subject": path, "log_file": path}
    return rules.decide(known, asked, details, Mode.SOLO, NOW).effect


def allowed(path: str, pattern: str, argument: str = "path") -> bool:
    return decide(path, rule(Effect.ALLOW, pattern, argument=argument)) is Effect.ALLOW


PLAIN = [
    ("/srv/shop?data/*", "/srv/shop2data/x"),
    ("/srv/shop[0-9]/*", "/srv/shop2/x"),
    ("/tmp/*", "/tmp/a"),
    ("/tmp/*", "/tmp/a/b.txt"),
    ("/tmp/*", "/tmp/a/"),
    ("/tmp/*", "/tmp/.cache/x"),
    ("/tmp/*", "/tmp/\u0434\u0430\u043d\u043d\u044b\u0435/caf\u00e9.txt"),
    ("/tmp/*", "/tmp/\u0939\u093f\u0928\u094d\u0926\u0940"),
    ("data/*", "data/a"),
    ("*/reports/*", "/home/ann/reports/may.pdf"),
    ("/data/*", "/data/date=2026-01-01/part-0.parquet"),
    ("C:\\Users\\*", "C:\\Users\\ann\\a.txt"),
    ("https://example.org/*", "https://example.org/a/b"),
    ("https://example.org/*", "https://example.org/a?x=1&y=%2F.."),
    ("https://*.example.org/*", "https://api.example.org/v1"),
    ("https://example.org*", "https://example.org"),
    ("report*", "report-may"),
    ("*.txt", "notes.txt"),
    ("*.txt", "/srv/notes.txt"),
    ("/srv/*/", "/srv/a/"),
    ("*@example.org", "ann@example.org"),
    ("*", "/any/../thing\n"),
]
TEXTS = [
    ("Weekly*", "Weekly report, 5% up; and/or more..."),
    ("*.txt", "a;b.txt"),
]
ODD = [
    ("/tmp/*", "/tmp/"),
    ("/srv/*/*", "/srv/a/"),
    ("/*", "/"),
    ("C:\\Users\\*", "C:\\Users\\"),
    ("C:\\Users\\*", "C:\\Users\\a."),
    ("/tmp/*", "/tmp/a./b"),
    ("/tmp/*", "/tmp/\u2488"),
    ("/tmp/*", "/tmp/\uff45tc"),
    ("*.txt", "a;rm -rf ~;.txt"),
    ("*.txt", "--output=x.txt"),
    ("*.txt", "~/.ssh/x.txt"),
    ("*.txt", "/etc/passwd .txt"),
    ("*.txt", "$HOME/x.txt"),
    ("https://example.org*", "https://example.org.evil.example"),
    ("https://example.org*", "https://example.organic/x"),
    ("https://example.org:*", "https://example.org:80.evil.example/"),
    ("/tmp/*", "/tmp/../etc/passwd"),
    ("/tmp/*", "/tmp/a/../../etc/passwd"),
    ("/tmp/*", "/tmp/.."),
    ("/tmp/*", "/tmp/./a"),
    ("/tmp/*", "/tmp//etc"),
    ("/tmp/*", "/tmp/..."),
    ("/tmp/*", "/tmp/a\n/etc/passwd"),
    ("/tmp/*", "/tmp/a\r"),
    ("/tmp/*", "/tmp/a\x00.txt"),
    ("/tmp/*", "/tmp/a /etc/passwd"),
    ("/tmp/*", "/tmp/a b"),
    ("/tmp/*", "/tmp/a,/etc/passwd"),
    ("/tmp/*", "/tmp/a:/etc/passwd"),
    ("/tmp/*", "/tmp/a;rm -rf /"),
    ("/tmp/*", "/tmp/a=/etc/passwd"),
    ("/tmp/*", "/tmp/..\\etc"),
    ("/tmp/*", "/tmp/a\\..\\..\\etc"),
    ("/tmp/*", "/tmp/%2e%2e/etc"),
    ("/tmp/*", "/tmp/..%2fetc"),
    ("/tmp/*", "/tmp/\u2025/etc"),
    ("/tmp/*", "/tmp/.\u200b./etc"),
    ("/tmp/*", "/tmp/..\u2215etc"),
    ("/tmp/*", "/tmp/\uff0e\uff0e\uff0fetc"),
    ("/tmp/*", "/tmp/a\u2028b"),
    ("/tmp/*", "/tmp/a\u00a0/etc"),
    ("/tmp/*", "/tmp/\u202eexe.txt"),
    ("/tmp/*", "/tmp/cafe\u0301"),
    ("/tmp/*", "/tmp/a\ufe0f"),
    ("/tmp/*", "/tmp/$HOME"),
    ("/tmp/*", "/tmp/$(rm x)"),
    ("/tmp/*", "/tmp/*"),
    ("/tmp/*", "/tmp/{a,b}"),
    ("/tmp/*", "/tmp/~root"),
    ("/tmp/*", "/tmp/`id`"),
    ("/tmp/*", "/tmp/a|sh"),
    ("/tmp/*", "/tmp/" + "a" * 5000),
    ("*/a", "../a"),
    ("*/a", "~/a"),
    ("*/a", "-rf/a"),
    ("*/a", "@/a"),
    ("report*", "report/../../etc/passwd"),
    ("report*", "report\\..\\..\\etc"),
    ("report*", "report/%2e%2e/x"),
    ("report*", "report\nDELETE"),
    ("*@example.org", "eve@evil.example,ann@example.org"),
    ("*@example.org", "eve@evil.example ann@example.org"),
    ("*@example.org", "eve@evil.example\nann@example.org"),
    ("*@example.org", '"eve@evil.example"<ann@example.org'),
    ("https://*.example.org/*", "https://evil.example/.example.org/x"),
    ("https://*.example.org/*", "https://evil.example?.example.org/x"),
    ("https://*.example.org/*", "https://evil.example#.example.org/x"),
    ("https://*.example.org/*", "https://evil.example\\.example.org/x"),
    ("https://example.org*", "https://example.org@evil.example/"),
    ("https://example.org/*", "https://example.org/../x"),
    ("https://example.org/*", "https://example.org/%2e%2e/x"),
    ("https://example.org/*", "https://example.org//evil.example"),
    ("C:\\Users\\*", "C:\\Users\\..\\Windows"),
    ("C:\\Users\\*", "C:\\Users\\a:stream"),
    ("/srv/shop?data", "/srv/shop/data"),
    ("/srv/shop[!-]data", "/srv/shop/data"),
    ("/srv/shop[+-9]data", "/srv/shop/data"),
    ("C:\\shop?data", "C:\\shop\\data"),
    ("https://example.org/a?b", "https://example.org/a/b"),
]


@pytest.mark.parametrize(("pattern", "path"), PLAIN)
def test_plain_path_is_allowed(pattern: str, path: str) -> None:
    assert allowed(path, pattern)


@pytest.mark.parametrize(("pattern", "text"), TEXTS)
def test_text_that_is_no_path_may_have_any_signs_people_write(pattern: str, text: str) -> None:
    assert allowed(text, pattern, "subject")
    assert not allowed(text, pattern, "log_file")


@pytest.mark.parametrize(("pattern", "path"), ODD)
def test_odd_path_is_asked(pattern: str, path: str) -> None:
    assert fnmatch.fnmatchcase(path, pattern), "it is about paths that the pattern fits"
    assert not allowed(path, pattern)


DISGUISED = [
    ("/etc/*", "//etc/passwd"),
    ("/etc/*", "/./etc/passwd"),
    ("/etc/*", "/tmp/../etc/passwd"),
    ("/etc/*", "/tmp/x /etc/passwd"),
    ("/etc/*", "/tmp/x\n/etc/passwd"),
    ("/etc/*", "/tmp/x:/etc/passwd"),
    ("/etc/*", "--file=/etc/passwd"),
    ("/etc/*", "file:///etc/passwd"),
    ("/etc/*", "\\etc\\passwd"),
    ("/etc/*", "/%65tc/passwd"),
    ("/etc/*", "%2Fetc%2Fpasswd"),
    ("/etc/*", "%252Fetc%252Fpasswd"),
    ("/etc/*", "\uff0fetc\uff0fpasswd"),
    ("/etc/*", "\u2215etc\u2215passwd"),
    ("/etc/*", "/e\u200btc/passwd"),
    ("C:\\Windows\\*", "C:\\Windows.\\x"),
    ("C:\\Windows\\*", "C:\\Windows .\\x"),
    ("/etc/passwd", "/etc/passwd. "),
]
DOUBTFUL = [
    ("/etc/*", "../../etc/passwd"),
    ("/etc/*", "~/x"),
    ("/etc/*", "/e*/passwd"),
    ("/etc/*", "$ETC/passwd"),
    ("/etc/*", "/ETC/passwd"),
    ("/etc/*", "/\u0435tc/passwd"),
    ("/etc/*", "/srv/link/../x"),
    ("/etc/*", "/proc/self/root/x"),
    ("/etc/*", "/proc/1/cwd/x"),
    ("/etc/*", "/dev/fd/3"),
    ("C:\\Program Files\\*", "C:\\PROGRA~1\\x"),
    ("/etc/*", "/srv/a\x00b"),
    ("/etc/*", "/" + "a" * 5000),
    ("prod*", "Prod-1"),
    ("prod*", "pr\u043ed-1"),
    ("https://evil.example/*", "HTTPS://EVIL.example/x"),
]
OTHERS = [
    ("/etc/*", "/srv/etc"),
    ("/etc/*", "/etc_backup/x"),
    ("/etc/*", "/srv/my file, and more"),
    ("/etc/*", "report.txt"),
    ("prod*", "test-1"),
    ("prod*", "a/b $c *"),
    ("https://evil.example/*", "https://example.org/x?y=1"),
]


@pytest.mark.parametrize(("pattern", "path"), DISGUISED)
def test_disguised_path_gets_around_no_rule(pattern: str, path: str) -> None:
    assert decide(path, rule(Effect.DENY, pattern), rule(Effect.ALLOW, None)) is not Effect.ALLOW
    assert decide(path, rule(Effect.ASK, pattern), rule(Effect.ALLOW, None)) is Effect.ASK


@pytest.mark.parametrize(("pattern", "path"), DOUBTFUL)
def test_path_that_may_lead_anywhere_is_asked(pattern: str, path: str) -> None:
    assert decide(path, rule(Effect.DENY, pattern), rule(Effect.ALLOW, None)) is Effect.ASK


@pytest.mark.parametrize(("pattern", "path"), OTHERS)
def test_other_paths_are_no_matter_of_a_rule(pattern: str, path: str) -> None:
    assert decide(path, rule(Effect.DENY, pattern), rule(Effect.ALLOW, None)) is Effect.ALLOW


@pytest.mark.parametrize(
    "path", ["/etc//passwd", "/etc/./passwd", "/etc/passwd/", "/ETC/passwd", "/x/../etc/passwd"]
)
def test_rule_that_denies_one_path_is_not_got_around(path: str) -> None:
    denying = rule(Effect.DENY, "/etc/passwd", Comparison.EQUALS)
    assert decide("/etc/passwd", denying) is Effect.DENY
    assert decide(path, denying, rule(Effect.ALLOW, None)) is not Effect.ALLOW
    assert decide("/etc/group", denying, rule(Effect.ALLOW, None)) is Effect.ALLOW


@pytest.mark.parametrize("sign", [" ", "=", ".", "=.."])
def test_rule_reads_a_long_text_within_seconds(sign: str) -> None:
    """Inside the transaction: everybody else waits for it."""
    before = time.process_time()
    allowed("x" + sign * 300_000, "x*", argument="subject")
    assert time.process_time() - before < 10


def test_one_path_that_is_allowed_is_that_one() -> None:
    for path in ("/srv/my file", "/srv/../x", "a\nb"):
        assert decide(path, rule(Effect.ALLOW, path, Comparison.EQUALS)) is Effect.ALLOW
        assert decide(path + "/", rule(Effect.ALLOW, path, Comparison.EQUALS)) is Effect.ASK


def put(text: str) -> Callable[[random.Random, str], str]:
    """Add a text to one of the names in a path, after the first."""

    def added(chance: random.Random, path: str) -> str:
        names = path.split("/")
        place = chance.randrange(2, len(names))
        names[place] = chance.choice((names[place] + text, text + names[place], names[place] + text + "x"))
        return "/".join(names)

    return added


def step(name: str) -> Callable[[random.Random, str], str]:
    """Add a name to a path, before its last."""

    def added(chance: random.Random, path: str) -> str:
        names = path.split("/")
        place = chance.randrange(2, len(names))
        return "/".join([*names[:place], name, *names[place:]])

    return added


ODDITIES = {
    **{
        f"step {name!r}": step(name)
        for name in ("..", ".", "", "../..", "...", "%2e%2e", "..;", " ", "\u2025", "..\\..")
    },
    **{
        f"sign {sign!a}": put(sign)
        for sign in (
            *"\n\r\t\0\v\f\x1b\x7f\x85 ,;:|&<>()'\"`$*?{}[]!%#^\\~",
            *"\u00a0\u00ad\u034f\u115f\u1680\u180e\u2000\u200b\u200d\u200e\u2024\u2028\u2029\u202e\u2044\u2060",
            *"\u2215\u2216\u29f5\u29f8\u3000\u3164\ufe0f\ufe68\ufeff\uff0e\uff0f\uff3c\uffa0\U000e0041",
            "\\..\\", "\n/etc/passwd", ":/etc/passwd", " /etc/passwd", ",/etc/passwd", "%2f..",
            "e\u0301",
        )
    },
}  # fmt: skip


def some_pattern(chance: random.Random) -> tuple[str, str]:
    """A pattern, and a plain path that fits it."""
    names = [chance.choice(NAMES) for _ in range(chance.randint(1, 4))]
    path = "/" + "/".join([*names, chance.choice(NAMES), chance.choice(ENDS)])
    starred = [chance.choice(STARS[:3]) if chance.random() < 0.2 else name for name in names]
    return "/" + "/".join([*starred, chance.choice(STARS)]), path


@pytest.mark.prove
def test_odd_paths_are_never_allowed_by_any_pattern(tell: counts.Tell) -> None:
    chance = random.Random(9)
    wanted = counts.count(1_000, 12_000)
    patterns, tried, fitting = 0, 0, 0
    while patterns < wanted:
        pattern, path = some_pattern(chance)
        if not fnmatch.fnmatchcase(path, pattern):
            continue
        patterns += 1
        assert allowed(path, pattern), (pattern, path)
        for name in chance.sample(sorted(ODDITIES), 4):
            odd = ODDITIES[name](chance, path)
            assert not allowed(odd, pattern), (name, pattern, odd)
            tried += 1
            fitting += fnmatch.fnmatchcase(odd, pattern)
    assert fitting > tried / 3, "most of them the pattern would fit"
    tell("patterns of paths that allow", patterns)
    tell("odd paths for them: none was allowed", tried)


PIECES = (
    *("a", "b.txt", "..", ".", "", "...", ".. ", " ..", "..;", "~", "~root", "$HOME", "%2e%2e", "%252e%252e"),
    *("\u2025", "\uff0e\uff0e", ".\u200b.", "..\0", "a\n", "a ", "a.", "-rf", "{a,b}", "*", "C:", "etc", "A"),
    *("\u2024\u2024", "a:b", "a,b", "a|b", "a=", "@x", "\u0430", "e\u0301", "\u2488", "NUL", "\u202e", "a\t"),
)
JOINTS = (
    "/",
    "/",
    "/",
    "/",
    "//",
    "\\",
    "\\",
    "%2f",
    "%5c",
    "%252F",
    "\u2215",
    "\uff0f",
    "\u2044",
    ":",
    "\n",
    " ",
)
ENDS_OF_PATHS = re.compile(r"[\s\0,;:|&<>()\"'`]+|=(?=[/~\\])")


def some_path(chance: random.Random, beginning: str) -> str:
    path = beginning
    for _ in range(chance.randint(1, 5)):
        path += chance.choice(PIECES) + chance.choice(JOINTS)
    return path if chance.random() < 0.3 else path.rstrip("/") + chance.choice(("", "x", "..", "/etc/passwd"))


def readings(path: str) -> Iterator[str]:
    """Where programs may take a path to lead: decoded or not, in characters of ASCII, with either separator,
    cut at what ends a path for them, each of several."""
    forms = {path, urllib.parse.unquote(path), urllib.parse.unquote(urllib.parse.unquote(path))}
    forms |= {unicodedata.normalize("NFKC", each) for each in forms}
    forms |= {each.replace("\u200b", "").replace("\u202e", "") for each in forms}
    forms |= {each.replace("\u2215", "/").replace("\u2044", "/") for each in forms}
    for form in forms:
        for part in {form, *ENDS_OF_PATHS.split(form)}:
            yield posixpath.normpath(part)
            yield ntpath.normpath(part).replace("\\", "/")


def is_inside(path: str, folder: str) -> bool:
    return path.startswith(f"{folder}/") and not re.search(r"(?:\A|/)(?:\.\.|~)(?:/|\Z)|[$*{]", path)


@pytest.mark.prove
def test_what_a_rule_allows_is_in_its_folder_for_every_program(tell: counts.Tell) -> None:
    chance = random.Random(10)
    patterns, tried, fitting, passed = counts.count(2_000, 12_000), 0, 0, 0
    for _ in range(patterns):
        folder = "/" + "/".join(chance.choice(NAMES[:10]) for _ in range(chance.randint(1, 3)))
        pattern = f"{folder}/{chance.choice(STARS[:3])}"
        for _ in range(4):
            path = some_path(chance, f"{folder}{chance.choice(JOINTS)}")
            tried += 1
            fitting += fnmatch.fnmatchcase(path, pattern)
            if allowed(path, pattern):
                passed += 1
                assert all(is_inside(each, folder) for each in readings(path)), (pattern, path)
    assert fitting > tried / 4, "many of them the pattern would fit"
    assert 0 < passed < fitting / 2
    tell("patterns of paths that allow", patterns)
    tell("odd paths for them: none was allowed that leads outside", tried)


def some_signs(chance: random.Random, path: str, change: Callable[[str], str]) -> str:
    return "".join(
        change(each) if each.isascii() and each.isalpha() and chance.random() < 0.3 else each for each in path
    )


DISGUISES: tuple[Callable[[random.Random, str], str], ...] = (
    lambda chance, path: path.replace("/", chance.choice(("//", "/./", "/x/../", "\\")), 1),
    lambda chance, path: path.replace("/", chance.choice(("%2f", "%2F", "\u2215", "\uff0f", "/\u200b")), 1),
    lambda chance, path: some_signs(chance, path, lambda each: f"%{ord(each):02x}"),
    lambda chance, path: some_signs(chance, path, lambda each: chr(ord(each) + 0xFEE0)),
    lambda chance, path: (
        chance.choice(("/tmp/x ", "/a:", "--file=", "file://", "x,", "/tmp/x\n", '"')) + path
    ),
    lambda chance, path: path + chance.choice((".", " ", "/", "/.", "\n", ":", ";ls")),
    lambda chance, path: path.upper() if chance.random() < 0.5 else path.title(),
    lambda chance, path: path.replace("a", "\u0430").replace("e", "\u0435"),
)


@pytest.mark.prove
def test_no_disguise_of_a_path_gets_around_a_rule_that_denies_it(tell: counts.Tell) -> None:
    chance = random.Random(11)
    wanted = counts.count(2_000, 12_000)
    denying, allowing = rule(Effect.DENY, "/etc/cert/*"), rule(Effect.ALLOW, None)
    for _ in range(wanted):
        path = "/etc/cert/" + chance.choice(ENDS)
        for disguise in chance.sample(DISGUISES, chance.randint(1, 2)):
            path = disguise(chance, path)
        assert decide(path, denying, allowing) is not Effect.ALLOW, path
    tell("disguises of a path that is denied: none was allowed", wanted)
