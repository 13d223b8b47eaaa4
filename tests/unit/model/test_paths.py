"""Rules about paths: one that allows fits plain ones, one that denies is not got around by an odd one."""

import fnmatch
import random
from collections.abc import Callable
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


def rule(effect: Effect, pattern: str | None, test: Comparison = Comparison.LIKE) -> Rule:
    where = () if pattern is None else (Condition(argument="path", test=test, value=pattern),)
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
    return rules.decide(known, asked, {"path": path}, Mode.SOLO, NOW).effect


def allowed(path: str, pattern: str) -> bool:
    return decide(path, rule(Effect.ALLOW, pattern)) is Effect.ALLOW


PLAIN = [
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
    ("Weekly*", "Weekly report, 5% up; and/or more..."),
    ("*@example.org", "ann@example.org"),
    ("*", "/any/../thing\n"),
]
ODD = [
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
]


@pytest.mark.parametrize(("pattern", "path"), PLAIN)
def test_plain_path_is_allowed(pattern: str, path: str) -> None:
    assert allowed(path, pattern)


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
]
DOUBTFUL = [
    ("/etc/*", "../../etc/passwd"),
    ("/etc/*", "~/x"),
    ("/etc/*", "/e*/passwd"),
    ("/etc/*", "$ETC/passwd"),
    ("/etc/*", "/ETC/passwd"),
    ("/etc/*", "/\u0435tc/passwd"),
    ("/etc/*", "/srv/link/../x"),
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
    wanted = counts.count(2_500, 12_000)
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
