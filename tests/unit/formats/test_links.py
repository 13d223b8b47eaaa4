"""Signed links: good for one person, one request, one action and a while, and for nothing else."""

import base64
import string
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frontdesk import errors
from frontdesk.formats import links
from frontdesk.formats.links import Purpose

KEY, OTHER_KEY = b"k" * 32, b"o" * 32
NOW = datetime(2026, 1, 5, 12, 0, tzinfo=UTC)
END = NOW + timedelta(minutes=5)
ABOUT = ("c_1", "d" * 64)
LINK = links.decision("c_1", "d" * 64, "token:ann", END)
TOKEN = links.sign(KEY, LINK)
LETTERS = string.ascii_letters + string.digits + "-_"


def refused(token: str, *, key: bytes = KEY, about: tuple[str, ...] = ABOUT, at: datetime = NOW) -> bool:
    try:
        links.check(key, token, Purpose.DECIDE, about, at)
    except errors.LinkRefused:
        return True
    return False


def test_link_names_the_one_that_it_was_made_for() -> None:
    assert links.check(KEY, TOKEN, Purpose.DECIDE, ABOUT, NOW) == "token:ann"


def test_link_holds_until_its_last_second_and_no_longer() -> None:
    assert not refused(TOKEN, at=END - timedelta(seconds=1))
    assert refused(TOKEN, at=END)
    assert refused(TOKEN, at=END + timedelta(days=1))


@pytest.mark.parametrize("about", [("c_2", "d" * 64), ("c_1", "e" * 64), ("c_1",), ("c_1d", "d" * 63), ()])
def test_link_is_about_nothing_else(about: tuple[str, ...]) -> None:
    assert refused(TOKEN, about=about)


def test_link_of_another_key_is_refused() -> None:
    assert refused(links.sign(OTHER_KEY, LINK))
    assert refused(TOKEN, key=OTHER_KEY)


def test_link_is_no_look_and_a_look_no_link() -> None:
    look = links.sign(KEY, links.look(*ABOUT, "token:ann", END))
    assert links.check(KEY, look, Purpose.LOOK, ABOUT, NOW) == "token:ann"
    assert refused(look)
    with pytest.raises(errors.LinkRefused):
        links.check(KEY, TOKEN, Purpose.LOOK, ABOUT, NOW)


def test_name_and_end_cannot_be_exchanged() -> None:
    _, _, signature = TOKEN.partition(".")
    for said in (["token:eve", LINK.expires], ["token:ann", LINK.expires + 1]):
        forged = base64.urlsafe_b64encode(str(said).replace("'", '"').encode()).rstrip(b"=").decode()
        assert refused(f"{forged}.{signature}")


def test_changing_any_one_character_makes_it_unusable() -> None:
    for place, character in enumerate(TOKEN):
        other = LETTERS[(LETTERS.find(character) + 1) % len(LETTERS)]
        assert refused(TOKEN[:place] + other + TOKEN[place + 1 :])
        assert refused(TOKEN[:place] + TOKEN[place + 1 :])


@pytest.mark.parametrize(
    "token", ["", ".", "a.b", TOKEN + "=", TOKEN + ".", TOKEN + "\n", f" {TOKEN}", "é.é", "\udc80"]
)
def test_what_is_no_link_is_refused(token: str) -> None:
    assert refused(token)


def test_endless_token_is_refused_unread() -> None:
    assert refused("a" * 1_000_000)


@given(st.text(max_size=300))
def test_no_text_passes_for_a_link(token: str) -> None:
    assert refused(token)


@given(st.text(alphabet=st.characters(exclude_categories=["Cs"])), st.text(alphabet="abc.,\"'[]", max_size=9))
def test_every_name_and_request_comes_back(approver: str, confirmation_id: str) -> None:
    link = links.decision(confirmation_id, "d", approver, END)
    token = links.sign(KEY, link)
    if len(token) <= links.MAX_TOKEN_CHARACTERS:
        assert links.check(KEY, token, Purpose.DECIDE, (confirmation_id, "d"), NOW) == approver


def test_short_key_is_refused() -> None:
    with pytest.raises(errors.InvalidInput, match="32 bytes"):
        links.sign(b"k" * 31, LINK)


def test_address_is_that_of_the_page_with_the_link() -> None:
    assert (
        links.address("https://desk.example/", KEY, LINK) == f"https://desk.example/approvals/c_1?t={TOKEN}"
    )
