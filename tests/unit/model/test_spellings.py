"""Spellings: a name is known whichever characters it is written with."""

import functools
import json
import random
import subprocess
import sys
import unicodedata
from collections.abc import Iterator
from importlib import resources

import pytest

from frontdesk.model import spellings
from frontdesk.model.confirmations import HIGH_RISK_ACTIONS, RESERVED, is_high_risk, is_reserved
from tests import counts

LETTERS = "abcdefghijklmnopqrstuvwxyz"
THE_TEN = sorted(HIGH_RISK_ACTIONS)


@functools.cache
def alike() -> dict[str, list[str]]:
    """For each letter what passes for it: the characters that Unicode says look like the small or the capital
    one, those that are one after compatibility, and letters that are named after one."""
    table = json.loads(resources.files("confusable_homoglyphs").joinpath("confusables.json").read_bytes())
    found: dict[str, set[str]] = {letter: set() for letter in LETTERS}
    for letter in LETTERS:
        for start in (letter, letter.upper()):
            near = {each["c"].strip("\u200e") for each in table[start]}
            found[letter] |= near | {each["c"] for one in near for each in table.get(one, ())}
    for character in map(chr, range(0x80, 0x110000)):
        plain = unicodedata.normalize("NFKD", character).casefold()
        words = unicodedata.name(character, "").split(" WITH ")[0].split(" ")
        named = words[-1].lower() if {"LATIN", "REGIONAL"} & {*words} and "LETTER" in words else ""
        for letter in {plain, named} & found.keys():
            found[letter].add(character)
    return {letter: sorted(each for each in others if len(each) == 1) for letter, others in found.items()}


def spelled(action: str) -> Iterator[str]:
    """All spellings with one letter that is not the one it looks like."""
    for place, letter in enumerate(action):
        for other in alike().get(letter, ()):
            yield action[:place] + other + action[place + 1 :]


@pytest.mark.prove
def test_all_spellings_of_the_ten_with_one_letter_are_known(tell: counts.Tell) -> None:
    every = [name for action in THE_TEN for name in spelled(action)]
    assert len(every) > 10_000
    tried = every[:: counts.count(7, 1)]
    assert [name for name in tried if not is_high_risk(name)] == []
    tell("spellings of the ten with one look-alike: all are known", len(tried))


@pytest.mark.prove
def test_spellings_of_the_ten_with_many_letters_are_known(tell: counts.Tell) -> None:
    chance = random.Random(39)
    tried = counts.count(2_000, 20_000)
    for _ in range(tried):
        action = chance.choice(THE_TEN)
        name = "".join(chance.choice([letter, *alike().get(letter, "-")]) for letter in action)
        assert is_high_risk(name), (action, name)
    tell("spellings of the ten with many look-alikes: all are known", tried)


def test_characters_that_are_several_letters_are_read_as_these(tell: counts.Tell) -> None:
    forms = {
        character: unicodedata.normalize("NFKD", character).casefold()
        for character in map(chr, range(0x80, 0x20000))
    }
    several = {
        each: form for each, form in forms.items() if len(form) > 1 and form.isascii() and form.isalpha()
    }
    every = [
        action.replace(form, character, 1)
        for action in THE_TEN
        for character, form in several.items()
        if form in action
    ]
    assert [name for name in every if not is_high_risk(name)] == []
    tell("spellings of the ten with a character for several letters: all are known", len(every))


@pytest.mark.prove
def test_the_ten_are_known_with_anything_unseen_in_them(tell: counts.Tell) -> None:
    chance = random.Random(40)
    unseen = [
        each for each in map(chr, range(0x110000)) if unicodedata.category(each) in ("Cf", "Mn", "Me", "Zs")
    ]
    tried = counts.count(3_000, 50_000)
    for _ in range(tried):
        action = chance.choice(THE_TEN)
        for _ in range(chance.choice((1, 1, 2, 5))):
            place = chance.randint(0, len(action))
            action = action[:place] + chance.choice(unseen) + action[place:]
        assert is_high_risk(action), ascii(action)
    tell("spellings of the ten with unseen characters: all are known", tried)


@pytest.mark.parametrize(
    "name",
    [
        "wipe_d\u0251tabase",
        "rnodify_permissions",
        "modify_perrnissi0ns",
        "m\u03c3dify_permissions",
        "transfer_fund\u03c3",
        "vvipe_database",
        "clelete_clata",
        "\u0433\u043fodify_permissions",
        "d3lete_d4t4",
        "tr@n$fer_fund5",
        "\U0001f1fcipe_database",
        "\U0001f186\U0001f178\U0001f17f\U0001f174_database",
        "wipe_dat\U0001f18ease",
        "wipe_d\u0363tabase",
        "wipe_data\u0363base",
        "wipe_d\U0001ccd6tabase",
        "wipe_d\ue000tabase",
        "wipe_data\ue000base",
        "wipe\u2028database",
        "de\u217cete_data",
        "e\u2093ec_remote",
    ],
)
def test_the_ten_are_known_in_odd_spellings(name: str) -> None:
    assert is_high_risk(name)


@pytest.mark.parametrize(
    "name",
    [
        "\u0443\u0434\u0430\u043b\u0438\u0442\u044c_\u0434\u0430\u043d\u043d\u044b\u0435",
        "wipe_databases",
        "wipe_database1",
        "delete_date",
        "\u30c7\u30fc\u30bf",
        "",
        "\u200b",
        "\ue000",
        "1",
        "x" * 200,
        "e" * 200,
    ],
)
def test_others_are_not(name: str) -> None:
    assert not is_high_risk(name)


def test_reserved_names_are_known_in_all_spellings_with_one_letter() -> None:
    assert [name for word in sorted(RESERVED) for name in spelled(word) if not is_reserved(name)] == []
    assert not any(map(is_reserved, ("agent", "ann", "\u0430\u043d\u043d\u0430", "locals", "tokens")))


@pytest.mark.parametrize(
    ("name", "pattern"),
    [
        ("de1ete_users", "delete_*"),
        ("delete-users", "delete_*"),
        ("d\u0435l\u0435te_users", "delete_*"),
        ("rnodify_all", "modify*"),
        ("modify_all", "rnodify*"),
        ("node1_de1ete", "node[0-9]_delete"),
        (
            "\u0443\u0434\u0430\u043b\u0438\u0442\u044c_\u0432\u0441\u0451",
            "\u0443\u0434\u0430\u043b\u0438\u0442\u044c_*",
        ),
        ("y\u0434\u0430\u043b\u0438\u0442\u044c_all", "\u0443\u0434\u0430\u043b\u0438\u0442\u044c_*"),
        ("drop\ue000table", "drop_table"),
        ("drop_table ", "*_t?ble"),
        ("[x]", "[[]x]"),
        ("a*b", "a[*]b"),
        ("", "*"),
        ("", ""),
    ],
)
def test_name_fits_a_pattern_however_it_is_written(name: str, pattern: str) -> None:
    assert spellings.fits(name, pattern)


@pytest.mark.parametrize(
    ("name", "pattern"),
    [
        ("send_mail", "delete_*"),
        ("deletes", "delete_*"),
        ("node1_show", "node[0-9]_[!s]*"),
        ("a", ""),
        ("", "?"),
        ("ab", "a"),
        ("a", "ab"),
        ("sender", "send_*"),
    ],
)
def test_other_names_do_not_fit(name: str, pattern: str) -> None:
    assert not spellings.fits(name, pattern)


@pytest.mark.parametrize(
    "name",
    [
        "Flood",
        "fl-ood",
        "f1ood",
        "fl\u043e\u043ed",
        "\uff46\uff4c\uff4f\uff4f\uff44",
        "floocl",
    ],
)
def test_spellings_of_a_name_have_one_skeleton(name: str) -> None:
    assert spellings.skeleton(name) == spellings.skeleton("flood")


def test_tables_are_not_read_for_names_in_ascii() -> None:
    program = (
        "from frontdesk.model import lookalikes, spellings, confirmations as c\n"
        "assert c.is_high_risk('Wipe-Database') and not c.is_high_risk('send_mail')\n"
        "assert spellings.fits('drop_all', 'drop_*')\n"
        "assert lookalikes._classes.cache_info().currsize == 0\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
