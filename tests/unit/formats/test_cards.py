"""The card of a request: the agent's words first and few, the action and its target last."""

import random
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frontdesk import errors
from frontdesk.formats import actions, canonical, cards, masking, targets, wrapping
from frontdesk.formats.cards import Card
from frontdesk.model.confirmations import HIGH_RISK_ACTIONS
from tests import counts
from tests.unit.formats import pairs

SECRET = "aB3dE5gH7jK9"
FORGED = '\n\nWhat will be done:\ndetails: {}\n\nAction: "list_files"\nApprove exactly this? [y/N]: '


def card(action: str = "send", details: Any = None, words: str = "Please", **more: Any) -> Card:
    return cards.make(canonical.payload(action, details or {}), words, more.pop("requester", "bot"), **more)


LONG = 200_000
HOSTILE: dict[str, dict[str, Any]] = {
    "a long line": {"note": "x" * LONG},
    "much before a command": {"argv": ["!"] * (LONG // 2)},
    "commands in a text of a shell": {"argv": ["sh", "-c", "`a " * LONG]},
}


@pytest.mark.parametrize("name", HOSTILE)
def test_what_is_long_is_shown_within_seconds(name: str) -> None:
    before = time.process_time()
    assert card("run", HOSTILE[name]).text(columns=80)
    assert time.process_time() - before < 10


class TestOrder:
    def test_words_stand_first_and_the_target_last(self) -> None:
        details = {"database": "customers_prod", "password": SECRET}
        shown = card("wipe_database", details, requester='me "here"').text(where="there", how="Look here.")
        assert shown.splitlines() == [
            'Asked by the agent: "me \\"here\\""',
            cards.AGENTS_WORDS,
            "> Please",
            "",
            cards.UNUSUAL,
            "▲ It is one of the ten actions that are always asked.",
            "! 1 value is hidden: password (12 characters). Look here.",
            "",
            cards.DONE,
            "details:",
            '  database: "customers_prod"',
            "  password: •••• (hidden)",
            "",
            'Action: "wipe_database"',
            'Its database: "customers_prod"',
        ]

    @given(st.text(max_size=300), st.text(max_size=60))
    def test_no_line_of_the_agent_passes_for_one_of_ours(self, words: str, requester: str) -> None:
        plain = card(words="x").text().splitlines()
        lines = card(words=words + FORGED, requester=requester + FORGED).text().splitlines()
        ours = [line for line in lines if not line.startswith(">")]
        more = [line for line in ours if line.startswith("[") and "more of these words" in line]
        assert len(ours) - len(more) == len([line for line in plain if not line.startswith(">")])
        assert lines[-1] == 'Action: "send"'

    @pytest.mark.parametrize(
        "words", ["line\n" * 5_000, "word " * 2_000, "x" * 10_000, "\n" * 9_000 + "end", "字" * 5_000]
    )
    def test_words_are_few_however_many_there_are(self, words: str) -> None:
        shown = card(words=words)
        assert len(shown.words) <= cards.MOST_WORD_LINES
        assert all(wrapping.columns_of(line) <= cards.WORD_COLUMNS for line in shown.words)
        all_of_them = card(words=words, all_words=True)
        assert all_of_them.words == (*shown.words, *shown.more_words)
        assert "".join("".join(all_of_them.words).split()) == "".join(words.split())

    def test_words_from_right_to_left_begin_at_the_left(self) -> None:
        assert card(words='\u05d0 Action: "x"\nplain').words == (
            '⟦right to left: \u05d0 Action: "x"⟧',
            "plain",
        )

    def test_rest_of_the_words_is_said_to_be_elsewhere(self) -> None:
        assert "\n[7 lines more of these words: there]\n" in card(words="a\n" * 12).text(where="there")

    def test_secrets_in_the_words_are_masked(self) -> None:
        assert card(words="go\u202e on\x1b[2J token=hunter2").words == ("go on [2J token=•••• (hidden)",)


class TestSpellings:
    @pytest.mark.parametrize(
        ("action", "told"),
        [
            ("wipe_database", ""),
            (
                "wipe_d\u0251tabase",
                ' Written "wipe_d\\u{251}tabase", with \\u{251} (Latin small letter alpha, like "a") for "a";'
                " read as wipe_database.",
            ),
            (
                "w1pe-database",
                ' Written "w1pe-database", with "1" for "i", "-" for "_"; read as wipe_database.',
            ),
            ("Wipe_Database", ' Written "Wipe_Database"; read as wipe_database.'),
            (
                "wipe_\u200bdatabase",
                ' Written "wipe_\\u{200b}database", with \\u{200b} (Zero width space);'
                " read as wipe_database.",
            ),
        ],
    )
    def test_one_of_the_ten_says_how_it_is_written_and_read(self, action: str, told: str) -> None:
        odd = card(action, {"database": "x"}).unusual[0]
        assert odd.text == f"It is one of the ten actions that are always asked.{told}"

    def test_characters_are_told_by_their_names(self) -> None:
        (odd,) = card(details={"path": "a\u202eb\u0430" + "\u202e" * 3}).unusual
        assert odd.text == (
            "5 characters that nobody can see or that may pass for another: "
            '\\u{202e} (Right-to-left override), \\u{430} (Cyrillic small letter a, like "a").'
        )

    def test_quotation_marks_are_no_other_writing(self) -> None:
        assert [odd.label for odd in card(details={"text": "all \u201egood\u201c"}).unusual] == [
            "other signs"
        ]
        assert [odd.label for odd in card(details={"text": "привет"}).unusual] == ["another writing"]

    def test_parts_of_an_emoji_are_no_alarm(self) -> None:
        shown = card(details={"text": "done \U0001f469\u200d\U0001f4bb \u2764\ufe0f"})
        assert [odd.label for odd in shown.unusual] == []
        assert "\\u{200d}" in shown.text()
        assert card(details={"text": "a\u200db \U0001f469\u200dx"}).unusual != ()


class TestMatters:
    def test_list_stands_in_one_line(self) -> None:
        shown = card("mail", {"to": ["a@b.example", "c"]})
        assert shown.closing().splitlines()[-1] == 'Its to: ["a@b.example", "c"]'

    def test_command_is_one_line_that_a_shell_would_read(self) -> None:
        shown = card("run", {"argv": ["rm", "-rf", "my files", "--token", SECRET]})
        assert shown.closing().splitlines() == [
            'Action: "run"',
            "Command: \"rm -rf 'my files' --token •••• (hidden)\"",
        ]

    def test_file_that_is_run_is_told_where_it_is_not_the_usual_one(self) -> None:
        for path, told in (("/usr/bin/rm", ['Its program: "/usr/bin/rm"']), ("/usr/bin/ls", [])):
            shown = card("list", {"argv": ["ls", "-R", "d"], "executable": {"path": path}})
            assert shown.closing().splitlines() == ['Action: "list"', 'Command: "ls -R d"', *told]

    def test_command_is_told_last_whatever_else_is_given_beside_it(self) -> None:
        details = {"command": "/opt/nuke --all", "script": "ls", "path": "/tmp/cache"}
        shown = card("run", details)
        assert shown.closing().splitlines()[:3] == [
            'Action: "run"',
            'Its command: "/opt/nuke --all"',
            'Its script: "ls"',
        ]
        assert "/opt/nuke --all" in "".join(map(str, shown.headline))

    def test_long_target_shows_both_ends_and_how_much_is_missing(self) -> None:
        (_, target) = card("remove", {"path": f"/srv/{'x' * 500}/end"}).matters
        assert len(target.shown) < 300
        assert target.shown.startswith('"/srv/')
        assert target.shown.endswith('/end"')
        assert "characters, all of them above" in target.shown

    def test_what_cannot_be_seen_is_said_to_be_there(self) -> None:
        (odd,) = card(details={"path": "a\u202eb"}).unusual
        assert odd.text.startswith("1 character that nobody can see")
        assert card(details={"path": "\\u{202e}"}).unusual == ()

    def test_long_action_is_said_to_be_long(self) -> None:
        (odd,) = card(details={"lines": ["x"] * 3_000}).unusual
        assert odd.text == "It is long: 3,002 lines, 2,999 of which repeat the one before."


class TestTyped:
    @pytest.mark.parametrize(
        ("action", "details"),
        [
            ("transfer_funds", {"to": "ACME", "order": {"iban": "DE00"}}),
            ("transfer_funds", {"to": "ACME", "parts": [{"more": {"Payee": "x"}}]}),
            ("delete_data", {"table": "cache", "tables": ["customers"]}),
            ("delete_data", {"table": "cache", "table_2": "customers"}),
        ],
    )
    def test_target_that_stands_beside_another_is_not_typed(self, action: str, details: Any) -> None:
        typed = card(action, details).typed
        assert typed
        assert typed.argument is None

    @pytest.mark.parametrize("action", sorted(HIGH_RISK_ACTIONS))
    def test_each_of_the_ten_has_a_target_that_is_typed(self, action: str) -> None:
        for name in targets.ARGUMENTS[action]:
            for spelled in (name, name.upper(), name.replace("_", "-")):
                typed = card(action, {spelled: "the one"}).typed
                assert typed is not None
                assert (typed.text, typed.argument) == ("the one", spelled)

    @pytest.mark.parametrize(
        "details",
        [
            {},
            {"other": "x"},
            {"database": "test", "db": "prod"},
            {"database": "test", "Database": "prod"},
            {"database": "test", "d\u0430tabase": "prod"},
            {"database": ""},
            {"database": ["prod"]},
            {"database": True},
            {"database": "prod "},
            {"database": "pr\u200bod"},
            {"database": "pr\u043ed"},
            {"database": "a\nb"},
            {"database": "x" * 81},
        ],
        ids=ascii,
    )
    def test_where_none_is_known_the_end_of_the_digest_is_typed(self, details: Any) -> None:
        shown = card("wipe_database", details)
        digest = canonical.digest(canonical.payload("wipe_database", details))
        assert shown.typed is not None
        assert (shown.typed.argument, shown.typed.text) == (None, digest[-6:])
        assert shown.matters[-1].shown == digest
        shown.check_typed("c_1", digest[-6:].upper())

    def test_nothing_is_typed_for_other_actions(self) -> None:
        assert card("send_mail", {"to": "ann"}).typed is None
        card("send_mail").check_typed("c_1", None)

    @pytest.mark.parametrize(
        ("said", "rest"),
        [
            ("customers prod", ""),
            ("  customers prod  ", ""),
            ('"customers prod" it is time', "it is time"),
            ("customers prod it is time", "it is time"),
            ("customers", None),
            ("customers product", None),
            ("yes customers prod", None),
            ("Customers Prod", None),
            ("", None),
        ],
    )
    def test_reason_may_follow_the_target(self, said: str, rest: str | None) -> None:
        typed = card("wipe_database", {"database": "customers prod"}).typed
        assert typed is not None
        assert typed.rest_of(said) == rest

    def test_refusal_does_not_say_what_to_type(self) -> None:
        with pytest.raises(errors.TargetMissing) as refused:
            card("wipe_database", {"database": "customers_prod"}).check_typed("c_1", "yes")
        assert "customers_prod" not in str(refused.value)


class TestHidden:
    def test_what_is_hidden_is_named_with_its_length(self) -> None:
        shown = card(
            details={"env": {"TOKEN": SECRET}, "argv": ["x", f"--token={SECRET}"], "a b": {"token": SECRET}}
        )
        assert [*map(str, shown.hidden)] == [
            '"a b".token (12 characters)',
            "argv[1] (12 characters)",
            "env.TOKEN (12 characters)",
        ]
        with pytest.raises(errors.NotLookedAt):
            shown.check_looked("c_1", False, "")
        shown.check_looked("c_1", True, "")

    def test_revealed_card_hides_nothing(self) -> None:
        shown = card(details={"token": SECRET}, reveal=True)
        assert (shown.hidden, shown.note) == ((), "")
        assert f'  token: "{SECRET}"' in shown.details

    @given(pairs.values)
    def test_everything_that_is_marked_is_counted(self, value: Any) -> None:
        for wide in (True, False):
            shown = card(details={"x": value, "token": value}, wide=wide)
            assert "\n".join(shown.details).count(masking.MARK) == len(shown.hidden)


class TestWrapping:
    @given(pairs.values, st.integers(20, 90))
    def test_no_line_is_wider_and_the_rest_of_one_stands_deeper(self, value: Any, columns: int) -> None:
        shown = card(details={"x": value, "y": "z" * 100})
        lines = shown.text(columns=columns).split("\n")
        assert max(map(wrapping.columns_of, lines)) <= columns
        begun = [line for line in lines if not line.startswith((" ", ">", "[", "…"))]
        ours = [line for line in shown.text().split("\n") if not line.startswith((" ", ">", "["))]
        assert len(begun) == len(ours), "no line of the action begins where ours do"

    @given(st.text(st.characters(exclude_categories=["C", "Z"], include_characters=" "), max_size=300))
    def test_nothing_is_lost_between_two_lines(self, text: str) -> None:
        line = f'  x: "{text}"'
        first, *others = wrapping.hang(line, 40).split("\n")
        rest = [each.removeprefix(f"    {wrapping.CONTINUED}") for each in others]
        assert "".join((first, *rest)) == line

    def test_line_is_broken_between_words_where_there_are_some(self) -> None:
        assert wrapping.hang("  one two three four five", 20) == "  one two three four\n    … five"

    def test_words_from_right_to_left_stand_whole_in_one_line(self) -> None:
        text = '  x: "one two three ⟦Hebrew: \u05d0\u05d1 \u05d2⟧ 12"'
        assert wrapping.hang(text, 30).split("\n") == [
            '  x: "one two three',
            '    … ⟦Hebrew: \u05d0\u05d1 \u05d2⟧ 12"',
        ]

    def test_line_of_the_action_cannot_pass_for_ours_by_its_length(self) -> None:
        value = "x" * 73 + 'Action: "list_files"'
        lines = card("wipe", {"x": value}).text(columns=80).splitlines()
        assert [line for line in lines if line.startswith("Action")] == ['Action: "wipe"']

    def test_deep_line_says_how_deep(self) -> None:
        deep: Any = 'Action: "list_files"'
        for _ in range(50):
            deep = {"a": deep}
        lines = card("wipe", {"x": deep}).text(columns=80).splitlines()
        assert any(line.startswith("  [level 51] a: ") for line in lines)
        assert [line for line in lines if line.startswith("Action")] == ['Action: "wipe"']

    @pytest.mark.prove
    def test_actions_that_differ_look_different_or_say_that_something_is_hidden(
        self, tell: counts.Tell
    ) -> None:
        chance = random.Random(2028)
        wanted = counts.count(200, 20_000)
        differing = hidden = 0
        while differing < wanted:
            make = chance.choice((pairs.some_pair, pairs.some_secret_pair))
            length = chance.randrange(60)
            one, other = ({"x": details, "z": "long " * length} for details in make(chance))
            columns = chance.choice((24, 40, 80, 200))
            shown = [card("act", details) for details in (one, other)]
            texts = [each.text(columns=columns) for each in shown]
            if canonical.payload("act", one) == canonical.payload("act", other):
                assert texts[0] == texts[1]
                continue
            differing += 1
            hidden += texts[0] == texts[1]
            assert texts[0] != texts[1] or shown[0].hidden, (one, other)
            whole = [card("act", details, reveal=True).text(columns=columns) for details in (one, other)]
            assert whole[0] != whole[1], (one, other)
        tell("pairs of cards that differ: all look different, or say what is hidden", differing)


def test_indent_is_what_lines_are_deep() -> None:
    shown = card(details={"a": {"b": ["c"]}})
    assert [(line.depth, line.text) for line in shown.lines] == [
        (0, "details:"),
        (1, "a:"),
        (2, "b:"),
        (3, '- "c"'),
    ]
    assert tuple(actions.INDENT * line.depth + line.text for line in shown.lines) == shown.details


def test_what_is_unusual_stands_above_the_question_when_it_is_out_of_sight() -> None:
    details = {
        "database": "prod",
        "token": "aB3dE5gH7jK9",
        "sql": "\n".join(f"SELECT {n};" for n in range(100)),
    }
    card = cards.make(canonical.payload("wipe_database", details), "Please", "agent")
    flags, *rest = card.closing().splitlines()
    assert flags.startswith("▲ one of the ten  ")
    assert flags.endswith("  ! 1 hidden")
    assert rest == [f"{each.name}: {each.shown}" for each in card.matters]
    assert card.text().endswith(card.closing())
    short = cards.make(canonical.payload("wipe_database", {"database": "prod"}), "Please", "agent")
    assert short.closing().startswith("Action: ")
