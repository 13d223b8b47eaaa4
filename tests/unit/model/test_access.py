"""Who is let in: by which rule, as what, and that nobody else is."""

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from frontdesk import errors
from frontdesk.model import access
from frontdesk.model.access import Access, AccessRule, AccessVerdict, Grant, Role, Strangers
from frontdesk.model.people import Principal
from frontdesk.model.platforms import Platform
from frontdesk.model.sources import ChatType, SessionSource
from tests.unit.model import strategies

NOON = datetime(2026, 1, 5, 12, 0, tzinfo=UTC)
LID, PHONE = "987654321098765", "4915112345678"


def telegram(user: str | None = "7", **fields: Any) -> SessionSource:
    return SessionSource(**{"platform": Platform.TELEGRAM, "chat_id": f"c{user}", "user_id": user} | fields)


def in_group(user: str | None = "7", chat: str = "-100", **fields: Any) -> SessionSource:
    return telegram(user, chat_id=chat, chat_type=ChatType.GROUP, **fields)


def verdict_on(source: SessionSource, authenticates: bool = False, **lists: Any) -> AccessVerdict:
    return access.decide(source, authenticates, Access(**lists))


def granted(source: SessionSource, role: Role = Role.USER) -> Grant:
    principal = Principal.of(source)
    assert principal is not None
    return Grant(
        principal=principal.id,
        platform=str(principal.platform),
        role=role,
        granted_at=NOON,
        granted_by="local",
    )


def seen(verdict: AccessVerdict) -> tuple[bool, AccessRule, Role | None]:
    return verdict.allowed, verdict.rule, verdict.role


# default deny


@given(strategies.sources())
def test_nobody_is_let_in_unless_something_lets_them_in(source: SessionSource) -> None:
    assume(source.platform is not Platform.LOCAL)
    verdict = access.decide(source, False, Access())
    flagged = source.role_authorized or source.delivered_via_upstream_relay
    assert verdict.allowed is (flagged and not source.is_bot)
    assert verdict.role is (Role.USER if verdict.allowed else None)


def test_stranger_is_refused_by_name_of_the_rule() -> None:
    assert seen(verdict_on(telegram())) == (False, AccessRule.STRANGER, None)


def test_message_that_names_nobody_is_refused() -> None:
    for user in (None, ""):
        assert seen(verdict_on(in_group(user), allow=["None", "7"])) == (False, AccessRule.NAMELESS, None)


def test_terminal_of_the_owner_is_the_administrators() -> None:
    local = SessionSource.local_cli()
    assert seen(verdict_on(local)) == (True, AccessRule.LOCAL, Role.ADMINISTRATOR)
    assert verdict_on(local).who == "local"


def test_what_a_relay_hands_on_is_no_terminal_of_the_owner() -> None:
    source = SessionSource(
        platform=Platform.LOCAL, chat_id="cli", user_id="x", delivered_via_upstream_relay=True
    )
    assert seen(verdict_on(source)) == (True, AccessRule.UPSTREAM_RELAY, Role.USER)


# lists


def test_listed_person_is_let_in_anywhere_on_the_platform() -> None:
    for source in (telegram(), in_group(), in_group(thread_id="5")):
        assert seen(verdict_on(source, allow=["7"])) == (True, AccessRule.ALLOW_LIST, Role.USER)


def test_numbers_and_edges_of_an_entry_do_not_matter() -> None:
    assert verdict_on(telegram(), allow=[7]).allowed
    assert verdict_on(telegram(), allow=[" 7 "]).allowed
    assert not verdict_on(telegram(" 7 "), allow=["7"]).allowed


def test_either_id_of_a_person_may_be_listed() -> None:
    source = telegram("7", user_id_alt="stable")
    assert verdict_on(source, allow=["7"]).allowed
    assert verdict_on(source, allow=["stable"]).allowed


def test_everybody_is_a_star() -> None:
    assert seen(verdict_on(telegram(), allow=["*"])) == (True, AccessRule.EVERYBODY, Role.USER)
    assert verdict_on(in_group(None), allow=["*"]).allowed


def test_chat_lets_in_whoever_writes_there_and_nowhere_else() -> None:
    lists: dict[str, Any] = {"allow": ["chat:-100"]}
    assert seen(verdict_on(in_group(), **lists)) == (True, AccessRule.ALLOWED_CHAT, Role.USER)
    assert verdict_on(in_group(None), **lists).allowed
    assert verdict_on(in_group(chat="t1", parent_chat_id="-100"), **lists).allowed
    assert not verdict_on(in_group(chat="-101"), **lists).allowed
    assert not verdict_on(telegram(), **lists).allowed


def test_administrators_are_let_in_as_such() -> None:
    found = verdict_on(telegram(), allow=["7"], administrators=["7"])
    assert seen(found) == (True, AccessRule.ADMINISTRATORS, Role.ADMINISTRATOR)


def test_most_powerful_rule_counts() -> None:
    lists = Access(allow=("7",), administrators=())
    grants = [granted(telegram(), Role.APPROVER)]
    assert seen(access.decide(telegram(), True, lists, grants)) == (True, AccessRule.PAIRED, Role.APPROVER)


def test_where_ids_can_be_claimed_nobody_is_more_than_a_user() -> None:
    for lists, grants in (
        (Access(administrators=("7",)), []),
        (Access(), [granted(telegram(), Role.ADMINISTRATOR)]),
    ):
        verdict = access.decide(telegram(), False, lists, grants, reliable_ids=False)
        assert (verdict.allowed, verdict.role) == (True, Role.USER)


@pytest.mark.parametrize(
    "way",
    [
        {"allow": ["7"]},
        {"allow": ["*"]},
        {"administrators": ["7"]},
        {"authenticates": True},
        {"source": in_group(role_authorized=True)},
        {"source": in_group(delivered_via_upstream_relay=True)},
    ],
)
@pytest.mark.parametrize("block", ["7", "chat:-100", "*", "telegram:7"])
def test_block_wins_over_every_way_in(way: dict[str, Any], block: str) -> None:
    source = way.get("source", in_group())
    lists = {name: value for name, value in way.items() if name != "source"}
    assert seen(verdict_on(source, **lists, block=[block])) == (False, AccessRule.BLOCKED, None)


def test_block_wins_over_a_grant_and_hears_nothing() -> None:
    lists = Access(block=("7",), strangers=Strangers.PAIR)
    verdict = access.decide(telegram(), False, lists, [granted(telegram(), Role.ADMINISTRATOR)])
    assert (verdict.allowed, verdict.strangers) == (False, Strangers.SILENCE)


# one platform, one account


def test_entry_of_one_account_does_not_count_on_another() -> None:
    second = telegram(account="second")
    assert not verdict_on(second, allow=["7", "*", "chat:c7"], administrators=["7"]).allowed
    assert not verdict_on(telegram(), allow=["telegram@second:7", "telegram@second:*"]).allowed
    for entry in ("telegram@second:7", "telegram@second:*", "telegram@second:chat:c7"):
        assert verdict_on(second, allow=[entry]).allowed
        assert not verdict_on(telegram(account="third"), allow=[entry]).allowed


def test_block_counts_on_every_account() -> None:
    source = telegram(account="second")
    assert verdict_on(source, allow=["telegram@second:7"], block=["7"]).rule is AccessRule.BLOCKED
    assert verdict_on(source, allow=["telegram@second:7"], block=["telegram@third:7"]).allowed


def test_grant_counts_for_the_very_principal_it_names() -> None:
    grant = granted(telegram())
    assert seen(access.decide(telegram(), False, Access(), [grant])) == (True, AccessRule.PAIRED, Role.USER)
    others = (
        telegram("8"),
        telegram(account="second"),
        SessionSource(platform=Platform.DISCORD, chat_id="c7", user_id="7"),
        telegram(None),
    )
    for other in others:
        assert not access.decide(other, False, Access(), [grant]).allowed


def test_id_that_looks_like_an_entry_is_nobody_elses() -> None:
    """Where people choose their ids, one may spell a wildcard, a chat or another account's person."""
    for user in ("*", "chat:-100", "telegram:7", "telegram@second:7"):
        source = telegram(user, is_bot=True)
        assert not verdict_on(source, allow=["*", "chat:-100", "telegram:7", "telegram@second:7"]).allowed
        assert not verdict_on(telegram(user), administrators=["7"], allow=["chat:-100", "7"]).allowed


def test_odd_id_can_be_listed_as_its_principal_is_written() -> None:
    odd = telegram("chat:x/y")
    principal = Principal.of(odd)
    assert principal is not None
    assert verdict_on(odd, allow=[principal.id]).allowed
    assert not verdict_on(odd, allow=["chat:x/y"]).allowed


@given(strategies.some_id, strategies.some_id, strategies.maybe_id)
def test_principal_lets_in_that_person_and_nobody_else(listed: str, writes: str, account: str | None) -> None:
    assume("*" not in (listed, writes))
    principal = Principal(platform=Platform.TELEGRAM, user_id=listed, account=account)
    assume(principal.id == principal.id.strip())
    source = telegram(writes, account=account)
    assert verdict_on(source, allow=[principal.id]).allowed is (listed == writes)


@pytest.mark.parametrize(
    ("listed", "writes"),
    [
        ("ann", "Ann"),
        ("ann", "ANN"),
        ("ann", "аnn"),  # the first letter is Cyrillic
        ("ann", "ann\u200b"),
        ("ann", "ａｎｎ"),
        ("ann", "ann "),
        ("ann", "ann\n"),
        ("caf\u00e9", "cafe\u0301"),
        ("strasse", "straße"),
        ("7", "٧"),
        ("7", "07"),
        ("7", "+7"),
    ],
)
def test_id_that_merely_resembles_a_listed_one_is_a_strangers(listed: str, writes: str) -> None:
    assert verdict_on(telegram(writes), allow=[listed]).rule is AccessRule.STRANGER
    assert verdict_on(telegram(listed), allow=[writes.strip() + "x"]).rule is AccessRule.STRANGER


# flags of the adapter


def test_role_and_relay_flags_are_honoured() -> None:
    assert verdict_on(in_group(role_authorized=True)).rule is AccessRule.ROLE_AUTHORIZED
    assert verdict_on(in_group(delivered_via_upstream_relay=True)).rule is AccessRule.UPSTREAM_RELAY


def test_role_of_the_platform_lets_in_who_has_it_where_they_write() -> None:
    lists: dict[str, Any] = {"allow": ["role:99"]}
    assert seen(verdict_on(in_group(roles=("1", "99")), **lists)) == (
        True,
        AccessRule.ROLE_AUTHORIZED,
        Role.USER,
    )
    for other in (in_group(roles=("9", "role:99")), in_group("99"), in_group("role:99"), telegram("99")):
        assert not verdict_on(other, **lists).allowed
    assert not verdict_on(in_group(roles=("99",), account="second"), **lists).allowed
    assert verdict_on(in_group(roles=("99",), account="second"), allow=["telegram@second:role:99"]).allowed
    assert not verdict_on(in_group("9", roles=("99",), is_bot=True), **lists).allowed
    blocked = verdict_on(in_group(roles=("99",)), allow=["*"], block=["role:99"])
    assert blocked.rule is AccessRule.BLOCKED


def test_role_may_be_a_number_to_its_channel() -> None:
    roles: Any = [99, 1]
    assert verdict_on(in_group(roles=roles), allow=["role:99"]).allowed


def test_roles_from_the_wire_let_nobody_in() -> None:
    stored = in_group(roles=("99",)).to_dict()
    assert "roles" not in stored
    for wire in (stored, stored | {"roles": ["99"]}):
        assert not verdict_on(SessionSource.from_dict(wire), allow=["role:99"]).allowed


def test_approver_decides_and_lets_nobody_in() -> None:
    verdict = verdict_on(telegram("7"), allow=["7"], approvers=["7"])
    assert seen(verdict) == (True, AccessRule.APPROVERS, Role.APPROVER)
    assert not verdict.covers(Role.ADMINISTRATOR)
    assert not verdict_on(telegram("8"), approvers=["7"]).allowed
    lists = Access(approvers=("7",))
    assert access.decide(telegram("7"), False, lists, reliable_ids=False).role is Role.USER


@pytest.mark.parametrize("name", ["approvers", "administrators"])
@pytest.mark.parametrize("crowd", ["*", "chat:-100", "role:99", "telegram@second:role:99"])
def test_nobody_decides_as_one_of_a_crowd(name: str, crowd: str) -> None:
    lists: dict[str, Any] = {name: (crowd,)}
    with pytest.raises(errors.InvalidSetting, match=name):
        Access(**lists)


@pytest.mark.parametrize("name", ["role_authorized", "delivered_via_upstream_relay", "is_bot"])
@pytest.mark.parametrize("value", [True, 1, "true"])
def test_flags_from_the_wire_let_nobody_in(name: str, value: Any) -> None:
    wire = {"platform": "telegram", "chat_id": "-100", "chat_type": "group", "user_id": "7", name: value}
    assert verdict_on(SessionSource.from_dict(wire)).rule is AccessRule.STRANGER
    flags: dict[str, Any] = {name: True}
    stored = in_group(**flags).to_dict()
    assert verdict_on(SessionSource.from_dict(stored)).rule is AccessRule.STRANGER


def test_name_of_the_platform_lets_nobody_in() -> None:
    for platform in Platform.known():
        verdict = verdict_on(SessionSource(platform=platform, chat_id="c", user_id="u"))
        assert verdict.allowed is (platform is Platform.LOCAL)


def test_credential_of_the_channel_lets_in_without_a_name() -> None:
    hook = SessionSource(platform=Platform.WEBHOOK, chat_id="deploys", account="ci")
    assert seen(verdict_on(hook, authenticates=True)) == (True, AccessRule.CHANNEL_CREDENTIAL, Role.USER)
    assert seen(verdict_on(hook)) == (False, AccessRule.NAMELESS, None)


# bots


def test_bot_is_refused_unless_it_is_named_or_bots_are_allowed() -> None:
    bot = in_group("9", is_bot=True)
    for allow in (["*"], ["chat:-100"]):
        assert seen(verdict_on(bot, allow=allow)) == (False, AccessRule.BOT, None)
        assert verdict_on(bot, allow=allow, allow_bots=True).allowed
    assert verdict_on(bot, allow=["9"]).allowed
    assert not verdict_on(in_group("9", is_bot=True, role_authorized=True)).allowed


def test_bot_is_never_answered() -> None:
    assert verdict_on(telegram(is_bot=True), strangers="pair").strangers is Strangers.SILENCE


# strangers


@pytest.mark.parametrize("strangers", list(Strangers))
def test_stranger_hears_what_is_set_in_private_alone(strangers: Strangers) -> None:
    assert verdict_on(telegram(), strangers=strangers).strangers is strangers
    assert verdict_on(in_group(), strangers=strangers).strangers is Strangers.SILENCE


# WhatsApp


def whatsapp(jid: str) -> SessionSource:
    return SessionSource(platform=Platform.WHATSAPP, chat_id=jid, user_id=jid)


@pytest.mark.parametrize("entry", [PHONE, f"+{PHONE}", f"{PHONE}@s.whatsapp.net", LID, f"{LID}@lid"])
@pytest.mark.parametrize("jid", [f"{PHONE}@s.whatsapp.net", f"{PHONE}:17@s.whatsapp.net", f"{LID}@lid"])
def test_whatsapp_person_is_one_under_every_name(entry: str, jid: str) -> None:
    verdict = access.decide(whatsapp(jid), False, Access(allow=(entry,)), aliases={LID: PHONE})
    assert seen(verdict) == (True, AccessRule.ALLOW_LIST, Role.USER)
    assert verdict.who == f"whatsapp:{PHONE}"
    assert access.decide(whatsapp(jid), False, Access(block=(entry,)), aliases={LID: PHONE}).rule is (
        AccessRule.BLOCKED
    )


def test_whatsapp_names_that_were_not_learned_are_two_people() -> None:
    assert not access.decide(whatsapp(f"{LID}@lid"), False, Access(allow=(PHONE,))).allowed
    aliases = {LID: PHONE}
    assert not access.decide(whatsapp("5@lid"), False, Access(allow=(PHONE, LID)), aliases=aliases).allowed


# roles


def test_roles_contain_the_lesser_ones() -> None:
    assert [[role.covers(wanted) for wanted in Role] for role in Role] == [
        [True, False, False, False],
        [False, True, False, False],
        [False, True, True, False],
        [True, True, True, True],
    ]


def test_what_a_role_may_not_do_is_refused() -> None:
    verdict = verdict_on(telegram(), allow=["7"])
    verdict.require(Role.USER)
    for refused in (verdict, verdict_on(telegram(), block=["7"])):
        with pytest.raises(errors.NotAllowed, match="telegram:7 may not do this"):
            refused.require(Role.APPROVER)


# settings


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("allow", "7", "allow is '7'; allowed: a list of ids"),
        ("allow", [True], "allowed: a list of ids"),
        ("allow", [None], "allowed: a list of ids"),
        ("allow", ["  "], "allowed: ids that are not empty"),
        ("block", ["chat:"], "allowed: ids that are not empty"),
        ("administrators", ["*"], "neither everybody nor a whole chat"),
        ("administrators", ["telegram@second:*"], "neither everybody nor a whole chat"),
        ("administrators", ["chat:-100"], "neither everybody nor a whole chat"),
        ("strangers", "ignore", "strangers is 'ignore'; allowed: silence, answer, pair"),
        ("allow_bots", "yes", "allow_bots is 'yes'; allowed: true or false"),
    ],
)
def test_setting_that_does_not_fit_is_refused_by_name(name: str, value: Any, message: str) -> None:
    with pytest.raises(errors.InvalidSetting, match=message):
        Access(**{name: value})


def test_matrix_id_that_contains_chat_may_be_an_administrators() -> None:
    source = SessionSource(platform=Platform.MATRIX, chat_id="!r:s", user_id="@ann.chat:s.org")
    assert verdict_on(source, administrators=["@ann.chat:s.org"]).role is Role.ADMINISTRATOR


@given(st.text(), st.booleans())
def test_any_text_as_an_entry_does_no_harm(text: str, qualified: bool) -> None:
    entry = f"telegram@a:{text}" if qualified else text
    try:
        lists = Access(allow=(entry,))
    except errors.InvalidSetting:
        return
    verdict = access.decide(telegram("someone", account="a"), False, lists)
    assert verdict.allowed is (qualified and text.strip() in ("*", "someone", "chat:csomeone"))


def test_entry_that_decodes_to_no_text_is_nobodys() -> None:
    assert not verdict_on(telegram("%FF"), allow=["telegram:%FF"]).allowed
