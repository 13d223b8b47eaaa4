"""People: who is behind a message, whom a session belongs to, and who may see it."""

from typing import Any

import msgspec
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from frontdesk.model import keys
from frontdesk.model.people import Person, Principal, Viewer, bare_name, owner_of, plain_name, viewer_of
from frontdesk.model.platforms import Platform
from frontdesk.model.sources import ChatType, SessionSource
from tests.unit.model import strategies

principals = st.builds(
    Principal, platform=strategies.any_platform, user_id=strategies.some_id, account=strategies.maybe_id
)


def telegram(**fields: Any) -> SessionSource:
    return SessionSource(platform=Platform.TELEGRAM, **fields)


# The principal


def test_principal_is_platform_account_and_user() -> None:
    source = telegram(chat_id="c", user_id="u", account="bot2")
    assert Principal.of(source) == Principal(platform=Platform.TELEGRAM, user_id="u", account="bot2")


def test_most_stable_id_names_the_person() -> None:
    principal = Principal.of(telegram(user_id="u", user_id_alt="stable"))
    assert principal is not None
    assert principal.user_id == "stable"


def test_whatsapp_direct_chat_is_named_after_the_person() -> None:
    principal = Principal.of(SessionSource(platform=Platform.WHATSAPP, chat_id="49@s.whatsapp.net"))
    assert principal is not None
    assert principal.user_id == "49"


@pytest.mark.parametrize("chat_type", ["dm", "group", "channel", "thread"])
def test_nobody_is_behind_an_anonymous_message(chat_type: str) -> None:
    assert Principal.of(telegram(chat_id="c", chat_type=chat_type)) is None


def test_nobody_is_behind_a_message_from_nowhere() -> None:
    assert Principal.of(telegram()) is None


@given(principals, principals)
def test_two_people_never_have_one_id(one: Principal, other: Principal) -> None:
    facts = [(each.platform, each.account or None, each.user_id) for each in (one, other)]
    assert (one.id == other.id) is (facts[0] == facts[1])


def test_persons_id_shows_platform_account_and_user() -> None:
    assert Principal(platform=Platform.MATRIX, user_id="@ada:example.org").id == "matrix:@ada%3Aexample.org"
    assert Principal(platform=Platform.SLACK, user_id="U1", account="T/1").id == "slack@T%2F1:U1"


@given(principals)
def test_persons_id_is_safe_wherever_a_key_is(principal: Principal) -> None:
    assert keys.check_key(principal.id) == principal.id


@given(principals, strategies.sources())
def test_persons_id_is_never_a_session_key(principal: Principal, source: SessionSource) -> None:
    assert principal.id != keys.build_session_key(source)


@given(strategies.sources())
def test_names_and_flags_say_nothing_about_who_it_is(source: SessionSource) -> None:
    unnamed = msgspec.structs.replace(
        source,
        user_name="Administrator",
        chat_name="Administrators",
        is_bot=not source.is_bot,
        role_authorized=not source.role_authorized,
        delivered_via_upstream_relay=not source.delivered_via_upstream_relay,
    )
    assert Principal.of(unnamed) == Principal.of(source)


# Who owns and sees


@given(strategies.sources(), strategies.settings)
def test_sender_sees_the_session_of_the_message(source: SessionSource, settings: dict[str, Any]) -> None:
    where = keys.address(source, **settings)
    assert viewer_of(source, where).sees(owner_of(source, where))


@given(strategies.sources(), strategies.settings)
def test_shared_session_belongs_to_its_chat_and_any_other_to_a_person(
    source: SessionSource, settings: dict[str, Any]
) -> None:
    where = keys.address(source, **settings)
    principal = Principal.of(source)
    expected = where.key if where.shared or principal is None else principal.id
    assert owner_of(source, where) == expected


@given(strategies.sources(), strategies.sources(), strategies.settings)
def test_nobody_sees_what_belongs_to_another_person(
    mine: SessionSource, theirs: SessionSource, settings: dict[str, Any]
) -> None:
    my_place, their_place = (keys.address(source, **settings) for source in (mine, theirs))
    assume(not their_place.shared and my_place.key != their_place.key)
    assume(Principal.of(mine) != Principal.of(theirs) or Principal.of(mine) is None)
    assert not viewer_of(mine, my_place).sees(owner_of(theirs, their_place))


@given(strategies.sources(), strategies.sources(), strategies.settings)
def test_shared_session_is_seen_from_its_chat_alone(
    mine: SessionSource, theirs: SessionSource, settings: dict[str, Any]
) -> None:
    my_place, their_place = (keys.address(source, **settings) for source in (mine, theirs))
    assume(their_place.shared)
    seen = viewer_of(mine, my_place).sees(owner_of(theirs, their_place))
    assert seen is (my_place.key == their_place.key)


@given(strategies.sources(), strategies.settings)
def test_no_message_makes_an_administrator(source: SessionSource, settings: dict[str, Any]) -> None:
    viewer = viewer_of(source, keys.address(source, **settings))
    assert not viewer.administrator
    assert len(viewer.owners) <= 2


@given(strategies.some_id, strategies.some_id, st.booleans())
def test_two_people_of_a_group_are_apart_unless_they_share(one: str, other: str, per_user: bool) -> None:
    assume(one != other)
    first, second = (telegram(chat_id="c", chat_type=ChatType.GROUP, user_id=user) for user in (one, other))
    place, other_place = (keys.address(source, per_user) for source in (first, second))
    assert viewer_of(first, place).sees(owner_of(second, other_place)) is (not per_user)


@given(strategies.sources(chat_type=st.just(ChatType.DM)), strategies.some_id, strategies.some_id)
def test_same_user_id_under_two_accounts_is_two_people(source: SessionSource, one: str, other: str) -> None:
    assume(one != other and (source.participant or source.chat_id))
    first, second = (msgspec.structs.replace(source, account=account) for account in (one, other))
    place, other_place = keys.address(first), keys.address(second)
    assert not viewer_of(first, place).sees(owner_of(second, other_place))


def test_administrator_sees_everything() -> None:
    assert Viewer.everything().sees("telegram:7")
    assert not Viewer(frozenset()).sees("telegram:7")


# Names


@given(principals)
def test_id_of_a_principal_is_its_plain_name(principal: Principal) -> None:
    if principal.platform is Platform.WHATSAPP:
        assert plain_name(plain_name(principal.id)) == plain_name(principal.id)
    else:
        assert plain_name(principal.id) == principal.id
    elsewhere = msgspec.structs.replace(principal, account="elsewhere")
    assert bare_name(elsewhere.id) == bare_name(principal.id) == bare_name(bare_name(principal.id))


@pytest.mark.parametrize(
    ("written", "plain"),
    [
        ("matrix:@ann:example.org", "matrix:@ann%3Aexample.org"),
        ("whatsapp:+49151:7@s.whatsapp.net", "whatsapp:49151"),
        ("whatsapp@shop:49151@lid", "whatsapp@shop:49151"),
        ("token:ann@example", "token:ann@example"),
        ("local", "local"),
        ("telegram:%FF", "telegram:%FF"),
    ],
)
def test_name_is_compared_in_one_form(written: str, plain: str) -> None:
    assert plain_name(written) == plain
    assert Person.of([written]).goes_by(plain)
    assert Person.of([plain]).may_be(written)


def test_account_of_ours_tells_people_apart_only_in_their_favour() -> None:
    person = Person.of(["telegram@second:42"])
    assert person.may_be("telegram:42")
    assert not person.goes_by("telegram:42", "telegram@third:42")
    assert not person.may_be("telegram:142")
    assert not person.may_be(None)
