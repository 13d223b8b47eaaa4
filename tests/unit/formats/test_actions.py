"""The view of an action: all of its bytes, nothing invisible, secrets masked."""

import json
import random
import unicodedata
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frontdesk import errors
from frontdesk.formats import actions, canonical, cards, masking
from frontdesk.formats.masking import MARK
from tests import counts
from tests.unit.formats import pairs

SECRET = "aB3dE5gH7jK9"
"""Looks drawn by chance."""


def view(details: Mapping[str, Any], action: str = "act", *, wide: bool = False) -> str:
    return view_of(canonical.payload(action, details), wide=wide)


def view_of(payload: bytes, *, reveal: bool = False, wide: bool = False) -> str:
    value = canonical.read_canonical(payload)
    return "\n".join(actions.lines_of(value if reveal else masking.covered(value, wide=wide), reveal=reveal))


def shown_text(text: str) -> str:
    """How a text is shown as an argument."""
    return view({"x": text}).removeprefix('action: "act"\ndetails:\n  x:').removeprefix(" ")


class TestLayout:
    def test_every_argument_has_a_line_and_nested_ones_are_indented(self) -> None:
        details = {
            "argv": ["rm", "-rf", "build"],
            "count": 3,
            "dry_run": False,
            "owner": None,
            "ratio": 1e-7,
            "target": {"hosts": ["a", {"name": "b", "ports": [1, [2, 3]]}], "none": {}, "nothing": []},
        }
        assert view(details, "exec_remote").splitlines() == [
            'action: "exec_remote"',
            "details:",
            "  argv:",
            '    - "rm"',
            '    - "-rf"',
            '    - "build"',
            "  count: 3",
            "  dry_run: false",
            "  owner: null",
            "  ratio: 1e-7",
            "  target:",
            "    hosts:",
            '      - "a"',
            "      -",
            '        name: "b"',
            "        ports:",
            "          - 1",
            "          -",
            "            - 2",
            "            - 3",
            "    none: {}",
            "    nothing: []",
        ]

    def test_action_without_arguments_is_shown(self) -> None:
        assert view({}) == 'action: "act"\ndetails: {}'

    def test_each_line_of_a_text_has_its_own(self) -> None:
        assert view({"code": "def f():\n    return 1\n", "x": "a\nb"}).splitlines()[2:] == [
            "  code:",
            '    "def f():\\n"',
            '    "␣␣␣␣return 1\\n"',
            "  x:",
            '    "a\\n"',
            '    "b"',
        ]

    def test_line_break_at_the_end_is_shown(self) -> None:
        assert shown_text("ls\n") == '"ls\\n"'
        assert shown_text("\n") == '"\\n"'

    def test_name_that_is_not_plain_is_quoted(self) -> None:
        assert view({"a b ": 1, "": 2, "é": 3, "a\nb": 4}).splitlines()[2:] == [
            '  "": 2',
            '  "a\\n" "b": 4',
            '  "a b␣": 1',
            '  "é": 3',
        ]

    def test_very_long_text_is_shown_whole(self) -> None:
        text = "".join(chr(97 + nth % 26) for nth in range(200_000))
        assert shown_text(text) == f'"{text}"'

    def test_text_cannot_pass_for_lines_of_the_view(self) -> None:
        text = 'x"\n  path: "/srv'
        assert shown_text(text).splitlines()[1:] == ['    "x\\"\\n"', '    "␣␣path: \\"/srv"']

    @pytest.mark.parametrize(
        "payload",
        [
            b"",
            b"\xff",
            b'{"action":"a","action":"b"}',
            b'{"action": "a"}',
            b'{"details":{},"action":"a"}',
            b'{"action":"a","details":{"n":1.0}}',
            b'{"action":"\\u0061","details":{}}',
        ],
    )
    def test_bytes_that_are_not_canonical_are_not_shown(self, payload: bytes) -> None:
        with pytest.raises(errors.InexactJson):
            canonical.read_action(payload)


class TestVisibleTexts:
    @pytest.mark.parametrize(
        ("text", "shown"),
        [
            ("a b", "a b"),
            ("a ", "a␣"),
            (" a", "␣a"),
            (" ", "␣"),
            ("a  b", "a␣␣b"),
            ("a \n b", 'a␣\\n"\n    "␣b'),
            ("a\tb", r"a\tb"),
            ("a\rb", r"a\rb"),
            ("a\x00\x1b[2K\x7fb", r"a\u{0}\u{1b}[2K\u{7f}b"),
            ('a"b\\c', r"a\"b\\c"),
            ("a\\nb", r"a\\nb"),
            ("a\u00a0b", r"a\u{a0}b"),
            ("a\u200bb\u2060\ufeff", r"a\u{200b}b\u{2060}\u{feff}"),
            ("a\u202egpj.exe", r"a\u{202e}gpj.exe"),
            ("\u2066a\u2069", r"\u{2066}a\u{2069}"),
            ("a\u2028b\x85", r"a\u{2028}b\u{85}"),
            ("a\u3164b\u115f\u2800", r"a\u{3164}b\u{115f}\u{2800}"),
            ("a\u00adb", r"a\u{ad}b"),
            ("x\U000e0041\U000e007f", r"x\u{e0041}\u{e007f}"),
            ("\ue000\U0010ffff", r"\u{e000}\u{10ffff}"),
            ("a\ufe0f", r"a\u{fe0f}"),
            ("p\u0430ypal", r"p\u{430}ypal"),
            ("\u0391dmin", r"\u{391}dmin"),
            ("/srv\u2215data \u2010f", r"/srv\u{2215}data \u{2010}f"),
            ("é", "é"),
            ("e\u0301", r"e\u{301}"),
            ("\u212b", r"\u{212b}"),
            ("\u1112\u1161\u11ab", "\u1112" r"\u{1161}\u{11ab}"),
            ("\u0301a", r"\u{301}a"),
            ("b" + "\u0308" * 5, "b\u0308\u0308" + r"\u{308}" * 3),
            ("a␣b", r"a\u{2423}b"),
            ("• one", "• one"),
            (MARK, r"\u{2022}\u{2022}\u{2022}\u{2022} (hidden)"),
        ],
        ids=ascii,
    )
    def test_what_could_not_be_seen_is_an_escape(self, text: str, shown: str) -> None:
        assert shown_text(text).strip() == f'"{shown}"'

    @pytest.mark.parametrize(
        "text",
        [
            *(
                "Jürgen Müller",
                "привет, мир",
                "Ελλάδα",
                "王小明：你好",
                "日本語",
                "한국어",
                "हिन्दी",
                "ภาษาไทย",
            ),
            *("Việt Nam", "naïve café – “quoted” … 50 €", "😀", "x²", "~/.config/*.toml"),
        ],
    )
    def test_writing_of_people_stays_readable(self, text: str) -> None:
        assert shown_text(text) == f'"{text}"'

    @given(st.text(st.characters(exclude_categories=["Cs"]), max_size=60), pairs.texts)
    def test_every_sign_of_the_view_can_be_seen(self, text: str, name: str) -> None:
        for line in view({"x": [text, {name: text}]}).split("\n"):
            assert line.isprintable()
            assert line == line.rstrip()
            assert "  " not in line.lstrip()

    @given(st.text(st.characters(exclude_categories=["Cs"]), max_size=60))
    def test_texts_that_look_the_same_by_normal_form_are_shown_differently(self, text: str) -> None:
        forms = {unicodedata.normalize(form, text) for form in ("NFC", "NFD")} | {text}
        views = {unicodedata.normalize("NFC", shown_text(form)) for form in forms}
        assert len(views) == len(forms)


class TestSecrets:
    def test_secrets_are_masked_and_seen_to_be_there(self) -> None:
        details = {
            "argv": ["curl", "--token", SECRET, f"https://ann:{SECRET}@host", f"--password={SECRET}"],
            "env": {"API_KEY": SECRET, "HOME": "/root"},
            "cmd": f"login --password {SECRET} now",
        }
        shown = view(details)
        assert SECRET not in shown
        assert shown.splitlines()[2:] == [
            "  argv:",
            '    - "curl"',
            '    - "--token"',
            f"    - {MARK}",
            f'    - "https://ann:{MARK}@host"',
            f'    - "--password={MARK}"',
            f'  cmd: "login --password {MARK} now"',
            "  env:",
            f"    API_KEY: {MARK}",
            '    HOME: "/root"',
        ]

    def test_structure_that_goes_by_a_secrets_name_keeps_its_shape_and_stays_in_the_bytes(self) -> None:
        details = {"credentials": {"user": "ann", "keys": [SECRET]}, "host": "db1"}
        payload = canonical.payload("act", details)
        assert view(details).splitlines()[2:] == [
            "  credentials:",
            "    keys:",
            f"      - {MARK}",
            '    user: "ann"',
            '  host: "db1"',
        ]
        assert canonical.read_strict(payload)["details"] == details
        other = canonical.payload("act", {**details, "credentials": {"user": "ann", "keys": [SECRET + "x"]}})
        assert canonical.digest(other) != canonical.digest(payload)

    @pytest.mark.parametrize(
        ("details", "hidden", "note"),
        [
            ({"path": "/srv", "x": f"x {MARK}", MARK: 1}, 0, ""),
            ({"env": {"TOKEN": SECRET}}, 1, "1 value is hidden"),
            (
                {"argv": ["--token", SECRET, f"--password={SECRET}", "https://a:b@c"]},
                3,
                "3 values are hidden",
            ),
            ({"credentials": {"a": [SECRET, 1, None], "b": SECRET}}, 2, "2 values are hidden"),
            ({"ghp" + "_" + "a1" * 18: "x"}, 1, "1 value is hidden"),
        ],
    )
    def test_hidden_values_are_counted(self, details: Mapping[str, Any], hidden: int, note: str) -> None:
        card = cards.make(canonical.payload("act", details), "", "agent")
        assert (len(card.hidden), card.note.partition(":")[0]) == (hidden, note)
        assert view(details).count(MARK) == hidden

    def test_revealed_view_has_every_value_and_nothing_invisible(self) -> None:
        name = "ghp" + "_" + "a1" * 18
        details = {name: 1, "env": {"TOKEN": "hunter2 \u202e"}, "argv": ["--token", "x"], "otp": 5}
        card = cards.make(canonical.payload("act", details), "", "agent", reveal=True)
        assert not card.hidden
        assert [*card.details[1:]] == [
            "  argv:",
            '    - "--token"',
            '    - "x"',
            "  env:",
            '    TOKEN: "hunter2 \\u{202e}"',
            f"  {name}: 1",
            "  otp: 5",
        ]

    def test_secret_in_a_name_is_masked(self) -> None:
        name = "ghp" + "_" + "a1" * 18
        assert view({name: 1, f"x {name}": 2}).splitlines()[2:] == [
            f'  "ghp_{MARK}": 1',
            f'  "x ghp_{MARK}": 2',
        ]

    def test_text_cannot_pass_for_a_hidden_secret(self) -> None:
        assert MARK not in view({"path": MARK, MARK: f"x {MARK}"})

    def test_text_of_several_lines_with_a_secret_keeps_its_lines(self) -> None:
        assert view({"file": f"a: 1\ntoken: {SECRET}\nb: 2\n"}).splitlines()[2:] == [
            "  file:",
            '    "a: 1\\n"',
            f'    "token: {MARK}\\n"',
            '    "b: 2\\n"',
        ]


RM = ["rm", "-rf", "/srv/build"]
BYPASSES: dict[str, tuple[Any, Any]] = {
    "a trailing space": ({"path": "/srv/data"}, {"path": "/srv/data "}),
    "a leading space": ({"argv": ["rm", "x"]}, {"argv": ["rm", " x"]}),
    "two spaces": ({"cmd": "rm -rf a b"}, {"cmd": "rm -rf a  b"}),
    "a space that does not break": ({"cmd": "rm -rf a b"}, {"cmd": "rm -rf a\u00a0b"}),
    "a tab": ({"cmd": "rm a"}, {"cmd": "rm\ta"}),
    "a line break at the end": ({"cmd": "ls"}, {"cmd": "ls\n"}),
    "another command on a new line": ({"cmd": "ls"}, {"cmd": "ls\nrm -rf /"}),
    "a carriage return over the command": ({"cmd": "echo safe"}, {"cmd": "rm -rf /\recho safe"}),
    "terminal escapes over the command": ({"cmd": "echo safe"}, {"cmd": "rm -rf /\x1b[2K\x1b[Gecho safe"}),
    "a symlink in place of the directory": ({"path": "/srv/current/data"}, {"path": "/srv/releases/7/data"}),
    "a path with dots": ({"path": "/srv/data"}, {"path": "/srv/x/../data"}),
    "a slash at the end": ({"path": "/srv/link"}, {"path": "/srv/link/"}),
    "another working directory": ({"argv": RM, "cwd": "/srv"}, {"argv": RM, "cwd": "/"}),
    "no working directory": ({"argv": RM, "cwd": "/srv"}, {"argv": RM}),
    "an added variable": ({"argv": RM, "env": {}}, {"argv": RM, "env": {"LD_PRELOAD": "/tmp/x.so"}}),
    "a changed variable": ({"env": {"PATH": "/usr/bin"}}, {"env": {"PATH": "/tmp:/usr/bin"}}),
    "a variable in other case": ({"env": {"PATH": "/tmp"}}, {"env": {"Path": "/tmp"}}),
    "an emptied variable": ({"env": {"A": ""}}, {"env": {"A": None}}),
    "env -S with one text": ({"argv": ["env", "-S", *RM]}, {"argv": ["env", "-S", " ".join(RM)]}),
    "env -S joined to it": ({"argv": ["env", "-S", " ".join(RM)]}, {"argv": ["env", "-S" + " ".join(RM)]}),
    "arguments as one text": ({"argv": RM}, {"argv": " ".join(RM)}),
    "arguments as one argument": ({"argv": RM}, {"argv": [" ".join(RM)]}),
    "arguments in another order": ({"argv": ["cp", "a", "b"]}, {"argv": ["cp", "b", "a"]}),
    "an empty argument": ({"argv": ["rm", "-rf", "x"]}, {"argv": ["rm", "-rf", "x", ""]}),
    "an argument in the argument": ({"argv": ["sh", "-c", "a", "b"]}, {"argv": ["sh", "-c", 'a", "b']}),
    "a look-alike letter": ({"host": "paypal.com"}, {"host": "p\u0430ypal.com"}),
    "another normal form": ({"path": "/srv/caf\u00e9"}, {"path": "/srv/cafe\u0301"}),
    "an invisible letter": ({"path": "/srv/data"}, {"path": "/srv/da\u200bta"}),
    "writing turned around": ({"path": "report-exe.pdf"}, {"path": "report-\u202efdp.exe"}),
    "a text in place of a number": ({"amount": 1}, {"amount": "1"}),
    "a text in place of a boolean": ({"dry_run": True}, {"dry_run": "true"}),
    "a list in place of an object": ({"to": {"0": "a"}}, {"to": ["a"]}),
    "a name with a space": ({"force": True}, {"force ": True}),
    "an argument hidden in a name": ({"a": 1, "b": 2}, {"a: 1\nb": 2}),
    "the last character of a long text": ({"sql": "x" * 20_000 + "a"}, {"sql": "x" * 20_000 + "b"}),
    "an escape in place of the character": ({"cmd": "a\nb"}, {"cmd": "a\\nb"}),
    "a sign of the view in the text": ({"path": "/srv/data "}, {"path": "/srv/data␣"}),
    "a target after the end of options": (
        {"argv": ["rm", "-rf", "--", "--token", "a"]},
        {"argv": ["rm", "-rf", "--", "--token", "b"]},
    ),
    "a target in the place of a secret": (
        {"argv": ["rm", "--token", "/tmp/a"]},
        {"argv": ["rm", "--token", "/tmp/b"]},
    ),
    "a target after the end of options in a text": ({"cmd": "rm -- --token a"}, {"cmd": "rm -- --token b"}),
    "a command by the name of a secret": (
        {"auth_token": {"command": "rm", "args": ["-rf", "/"]}},
        {"auth_token": {"command": "ls", "args": ["-rf", "/"]}},
    ),
    "a list by the name of a secret": (
        {"credentials": ["rm", "-rf", "/"]},
        {"credentials": ["rm", "-rf", "/srv"]},
    ),
    "more of a list by the name of a secret": (
        {"credentials": ["rm", "x"]},
        {"credentials": ["rm", "x", "y"]},
    ),
    "a command in a secret variable": (
        {"env": {"TOKEN": "rm -rf /srv"}, "argv": ["sh", "-c", "$TOKEN"]},
        {"env": {"TOKEN": "rm -rf /etc"}, "argv": ["sh", "-c", "$TOKEN"]},
    ),
    "a command in an assignment": (
        {"cmd": "env TOKEN=\"rm -rf /srv\" sh -c '$TOKEN'"},
        {"cmd": "env TOKEN=\"rm -rf /etc\" sh -c '$TOKEN'"},
    ),
    "a variable after a cookie": (
        {"cmd": "COOKIE=x; PATH=/tmp/a run"},
        {"cmd": "COOKIE=x; PATH=/tmp/b run"},
    ),
    "the command that prints a secret": (
        {"env": {"RESTIC_PASSWORD_COMMAND": "a"}},
        {"env": {"RESTIC_PASSWORD_COMMAND": "b"}},
    ),
}


class TestBypasses:
    @pytest.mark.parametrize("name", BYPASSES)
    def test_another_action_has_another_digest_and_looks_different(self, name: str) -> None:
        approved, executed = (canonical.payload("exec_remote", details) for details in BYPASSES[name])
        assert canonical.digest(approved) != canonical.digest(executed)
        views = [view_of(payload) for payload in (approved, executed)]
        assert seen(views[0]) != seen(views[1])

    def test_name_of_the_action_is_exact_too(self) -> None:
        assert view({}, "deploy") != view({}, "deploy ")
        assert seen(view({}, "deploy")) != seen(view({}, "deploy "))

    @pytest.mark.prove
    def test_actions_that_differ_look_different(self, tell: counts.Tell) -> None:
        chance = random.Random(2026)
        wanted = counts.count(400, 20_000)
        differing = 0
        while differing < wanted:
            payloads = [canonical.payload("act", details) for details in pairs.some_pair(chance)]
            views = [view_of(payload) for payload in payloads]
            assert (seen(views[0]) == seen(views[1])) is (payloads[0] == payloads[1]), payloads
            differing += payloads[0] != payloads[1]
        tell("pairs of actions that differ: all look different", differing)

    @pytest.mark.prove
    def test_actions_with_secrets_that_differ_look_different_or_differ_in_what_is_said_to_be_hidden(
        self, tell: counts.Tell
    ) -> None:
        chance = random.Random(2027)
        wanted = counts.count(400, 20_000)
        differing = told_apart = 0
        while differing < wanted:
            payloads = [canonical.payload("act", details) for details in pairs.some_secret_pair(chance)]
            check_told_apart(*payloads)
            differing += payloads[0] != payloads[1]
            told_apart += len({seen(view_of(payload)) for payload in payloads}) == 2
        assert 0 < differing - told_apart < differing / 2, "some differ in hidden values alone, most do not"
        tell("pairs of actions with secrets: all look different, or say what is hidden", differing)

    @given(pairs.values, pairs.values)
    def test_any_two_values_look_the_same_only_when_they_are(self, one: Any, other: Any) -> None:
        check_told_apart(canonical.canonical(one), canonical.canonical(other))


def check_told_apart(one: bytes, other: bytes) -> None:
    """They look different when they differ, but for values that both say are hidden."""
    masked = [view_of(payload) for payload in (one, other)]
    whole = [view_of(payload, reveal=True) for payload in (one, other)]
    assert (seen(whole[0]) == seen(whole[1])) is (one == other), (one, other)
    assert not any(MARK in text for text in whole)
    for text, all_of_it in zip(masked, whole, strict=True):
        assert (text == all_of_it) is (MARK not in text)
        check_only_hidden(text, all_of_it)
    if one != other and seen(masked[0]) == seen(masked[1]):
        assert masked[0].count(MARK) == masked[1].count(MARK) > 0, (one, other)


def check_only_hidden(masked: str, whole: str) -> None:
    """Everything else than what stands in the place of marks is in the masked view, in order."""
    place = 0
    for part in masked.split(MARK):
        place = whole.index(part, place) + len(part)


def seen(text: str) -> str:
    """What a reader sees of it at most: without the space at the ends of a line, in one normal form, and
    without what has no shape of its own."""
    lines = [unicodedata.normalize("NFC", line).rstrip() for line in text.split("\n")]
    kept = [
        [sign for sign in line if unicodedata.category(sign) not in ("Cf", "Cc", "Cs", "Zl", "Zp")]
        for line in lines
    ]
    return json.dumps(["".join(line) for line in kept])
