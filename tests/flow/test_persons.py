"""One person counts once, and decides about nothing of their own, whichever of their names they use."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from frontdesk import GatewayConfig, Platform, SessionSource, errors
from frontdesk.flow.confirmations.confirming import ConfirmationService
from frontdesk.model import codes
from frontdesk.model.access import Access
from frontdesk.model.confirmations import Caller, CallerKind, Confirmation, Mode, Settings, Status
from frontdesk.model.rules import Effect, Rule
from frontdesk.model.turns import TurnState
from tests.contracts.samples import LASTING
from tests.flow.harness import House, Notebook, open_house

PHONE, LID = "4915112345678", "987654321098765"
BY_PHONE, BY_LID = f"whatsapp:{PHONE}", f"whatsapp:{LID}"
AGENT = Caller(id="token:bot", kind=CallerKind.AGENT)
CONFIG = GatewayConfig(
    default_reset_policy=LASTING.default_reset_policy,
    access={"whatsapp": Access(administrators=(PHONE, LID, "4930"), allow=("*",))},
)


def approver(name: str) -> Caller:
    return Caller(id=name, kind=CallerKind.APPROVER)


def writes(number: str, **fields: Any) -> SessionSource:
    jid = f"{number}@s.whatsapp.net"
    return SessionSource(**{"platform": Platform.WHATSAPP, "chat_id": jid, "user_id": jid} | fields)


@asynccontextmanager
async def opened(store_url: str, quorum: int = 2, **settings: Any) -> AsyncIterator[House]:
    """A gateway on WhatsApp where so many people have to say yes."""
    notebook, confirming = Notebook("whatsapp", reliable_sender_ids=True), Settings(**settings)
    async with open_house(store_url, config=CONFIG, notebook=notebook, confirming=confirming) as house:
        rule = Rule(id="several", effect=Effect.ASK, quorum=quorum)
        await service_of(house).add_rule(rule, approver("token:owner"))
        yield house


def service_of(house: House) -> ConfirmationService:
    return house.gateway.parts.confirmations


async def asked_of(house: House, **details: Any) -> Confirmation:
    data = {"action": "send", "description": "Send it?", "details": details}
    return (await service_of(house).submit(data, AGENT)).confirmation


async def votes(house: House, *names: str) -> Confirmation:
    """A new request after these have approved it, in this order."""
    asked = await asked_of(house, votes=names)
    for name in names:
        asked = await service_of(house).approve(asked.id, approver(name))
    return asked


async def link(house: House, one: str, other: str) -> None:
    """Two accounts that their owner has linked with a code."""
    code, now = codes.new_code(), house.gateway.parts.clock.now()
    offer = codes.Pairing(
        kind=codes.CodeKind.LINK,
        principal=one,
        platform=one.partition(":")[0],
        created_at=now,
        expires_at=now + codes.VALID_FOR,
    )
    assert await house.store.people.begin_pairing(offer, codes.seal(code), now)
    assert (await house.store.people.link(code, other, person=f"{one}+{other}", now=now)).pairing


@pytest.mark.parametrize("names", [(PHONE, LID), (LID, PHONE)], ids=str)
@pytest.mark.parametrize("learned_after", [0, 1])
async def test_phone_and_lid_are_one_vote_whenever_that_is_learned(
    store_url: str, names: tuple[str, str], learned_after: int
) -> None:
    async with opened(store_url) as house:
        asked = await asked_of(house)
        for number, name in enumerate(names):
            if number == learned_after:
                await house.sessions.learn_whatsapp_alias(LID, PHONE)
            told = await house.ask(f"/approve {asked.id}", source=writes(name))
            assert "needs 1 more: 1 said yes" in told
        assert "is approved" in await house.ask(f"/approve {asked.id}", source=writes("4930"))


async def test_votes_that_turn_out_to_be_one_persons_are_one(store_url: str) -> None:
    async with opened(store_url, quorum=3) as house:
        for known in ("alias", "link"):
            first, second = (BY_LID, BY_PHONE) if known == "alias" else ("matrix:ann", "telegram:7")
            asked = await asked_of(house, known=known)
            for name in (first, second):
                await service_of(house).approve(asked.id, approver(name))
            if known == "alias":
                await house.sessions.learn_whatsapp_alias(LID, PHONE)
            else:
                await link(house, first, second)
            voted = await service_of(house).approve(asked.id, approver("token:bob"))
            assert (voted.status, len(voted.approvals)) == (Status.PENDING, 2)
            voted = await service_of(house).approve(asked.id, approver("token:cho"))
            assert voted.status is Status.APPROVED


async def test_who_votes_again_hears_how_many_people_said_yes(store_url: str) -> None:
    async with opened(store_url, quorum=3) as house:
        asked = await votes(house, "matrix:ann", "telegram:7")
        await link(house, "matrix:ann", "telegram:7")
        again = await service_of(house).approve(asked.id, approver("telegram:7"))
        assert (again.status, len(again.approvals)) == (Status.PENDING, 1)


async def test_denial_under_another_name_ends_it(store_url: str) -> None:
    async with opened(store_url) as house:
        asked = await votes(house, BY_LID)
        await house.sessions.learn_whatsapp_alias(LID, PHONE)
        await house.ask(f"/deny {asked.id}", source=writes(PHONE))
        found = await service_of(house).find(asked.id)
        assert (found.status, found.approvals) == (Status.DENIED, ())


@pytest.mark.parametrize("learned_after", [0, 1])
async def test_nobody_decides_under_another_name_about_what_was_asked_for_them(
    store_url: str, learned_after: int
) -> None:
    async with opened(store_url, quorum=1, mode=Mode.STRICT) as house:
        if not learned_after:
            await house.sessions.learn_whatsapp_alias(LID, PHONE)
        turn = await house.say("!approve send", source=writes(LID))
        await house.until(turn.turn_id, TurnState.WAITING)
        [asked] = await service_of(house).list(status=Status.PENDING)
        if learned_after:
            await house.sessions.learn_whatsapp_alias(LID, PHONE)
        for name in (PHONE, LID):
            assert "on their behalf" in await house.ask(f"/approve {asked.id}", source=writes(name))
        for name in (BY_PHONE, BY_LID, f"whatsapp@second:{LID}"):
            with pytest.raises(errors.NotAllowed, match="on their behalf"):
                await service_of(house).reveal(asked.id, approver(name))
        assert (await service_of(house).find(asked.id)).status is Status.PENDING


@pytest.mark.parametrize(
    "account",
    [BY_PHONE, BY_LID, f"whatsapp:+{PHONE}", f"whatsapp:{LID}@lid", f"whatsapp:{PHONE}:7@s.whatsapp.net"],
)
async def test_token_and_whatsapp_account_are_one_however_the_settings_write_it(
    store_url: str, account: str
) -> None:
    persons = (frozenset({"token:ann", account}),)
    async with opened(store_url, persons=persons) as house:
        await house.sessions.learn_whatsapp_alias(LID, PHONE)
        asked = await votes(house, "token:ann")
        for name in (PHONE, LID):
            assert "needs 1 more: 1 said" in await house.ask(f"/approve {asked.id}", source=writes(name))


async def test_matrix_account_is_written_as_matrix_writes_it(store_url: str) -> None:
    """As the documentation has it: ``ann = ["matrix:@ann:example.org"]``."""
    persons = (frozenset({"token:ann", "matrix:@ann:example.org"}),)
    async with opened(store_url, persons=persons) as house:
        asked = await votes(house, "token:ann", "matrix:@ann%3Aexample.org")
        assert (asked.status, asked.approvals) == (Status.PENDING, ("token:ann",))


async def test_account_that_writes_to_two_of_ours_is_one_person(store_url: str) -> None:
    async with opened(store_url) as house:
        asked = await votes(house, "telegram:42", "telegram@second:42", "telegram@third:42")
        assert (asked.status, asked.approvals) == (Status.PENDING, ("telegram:42",))
        await link(house, "telegram@second:42", "matrix:ann")
        asked = await votes(house, "matrix:ann", "telegram@third:42")
        assert (asked.status, asked.approvals) == (Status.PENDING, ("matrix:ann",))
        rule = Rule(id="r", effect=Effect.ASK, approvers=("telegram:42", "matrix:ann", "token:bob"))
        await service_of(house).add_rule(rule, approver("token:owner"))
        asked = await asked_of(house, rule="names one of them")
        with pytest.raises(errors.NotAllowed, match="names who decides"):
            await service_of(house).approve(asked.id, approver("telegram@third:42"))
        await service_of(house).revoke_rule("r", approver("token:owner"))
        asked = await votes(house, "telegram:42", "telegram:142")
        assert asked.status is Status.APPROVED


async def test_both_ids_of_one_message_are_one_person(store_url: str) -> None:
    """A channel that tells two ids of a sender says that they are one."""
    both = {"chat_id": "g", "chat_type": "group", "user_id": PHONE, "user_id_alt": "4930"}
    async with opened(store_url) as house:
        asked = await votes(house, BY_PHONE)
        told = await house.ask(f"/approve {asked.id}", source=writes("x", **both))
        assert "needs 1 more: 1 said yes" in told


async def test_rule_names_a_person_by_any_name(store_url: str) -> None:
    async with opened(store_url, quorum=1) as house:
        await house.sessions.learn_whatsapp_alias(LID, PHONE)
        for name in (BY_LID, BY_PHONE, f"whatsapp:+{PHONE}"):
            rule = Rule(id=name, effect=Effect.ASK, approvers=(name,))
            await service_of(house).add_rule(rule, approver("token:owner"))
            asked = await asked_of(house, rule=name)
            with pytest.raises(errors.NotAllowed, match="names who decides"):
                await service_of(house).approve(asked.id, approver("whatsapp:4930"))
            assert "is approved" in await house.ask(f"/approve {asked.id}", source=writes(PHONE))


async def test_rule_for_two_names_one_person(store_url: str) -> None:
    async with opened(store_url) as house:
        rule = Rule(id="r", effect=Effect.ASK, quorum=2, approvers=("telegram:42", "telegram@second:42"))
        with pytest.raises(errors.InvalidInput, match="names 1 who may decide, and wants 2"):
            await service_of(house).add_rule(rule, approver("token:owner"))


@pytest.mark.parametrize("unlinked", ["matrix:ann", "telegram:7"])
@pytest.mark.parametrize("after_vote", [False, True])
async def test_unlinking_makes_no_second_voter(store_url: str, unlinked: str, after_vote: bool) -> None:
    async with opened(store_url) as house:
        await link(house, "matrix:ann", "telegram:7")
        asked = await asked_of(house)
        for name in ("matrix:ann", "telegram:7"):
            if after_vote is (name == "telegram:7"):
                assert await house.store.people.unlink(unlinked, house.gateway.parts.clock.now(), by="local")
            asked = await service_of(house).approve(asked.id, approver(name))
        assert (asked.status, asked.approvals) == (Status.PENDING, ("matrix:ann",))


async def test_account_that_was_unlinked_decides_for_nobody_else(store_url: str) -> None:
    """Names that are no longer somebody's count against them, and permit nothing."""
    async with opened(store_url, quorum=1) as house:
        await link(house, "matrix:ann", "telegram:7")
        rule = Rule(id="r", effect=Effect.ASK, approvers=("matrix:ann",))
        await service_of(house).add_rule(rule, approver("token:owner"))
        assert await house.store.people.unlink("telegram:7", house.gateway.parts.clock.now(), by="local")
        asked = await asked_of(house)
        with pytest.raises(errors.NotAllowed, match="names who decides"):
            await service_of(house).approve(asked.id, approver("telegram:7"))
        assert (await service_of(house).approve(asked.id, approver("matrix:ann"))).status is Status.APPROVED


@pytest.mark.parametrize("effect", [Effect.DENY, Effect.ASK])
async def test_rule_about_a_conversation_holds_under_its_new_name(store_url: str, effect: Effect) -> None:
    async with opened(store_url, quorum=1) as house:
        key = await house.sessions.session_key_for(writes(LID))
        rule = Rule(id="here", effect=effect, session_key=key, quorum=3 if effect is Effect.ASK else 1)
        await service_of(house).add_rule(rule, approver("token:owner"))
        await house.sessions.learn_whatsapp_alias(LID, PHONE)
        turn = await house.say("!approve send", source=writes(PHONE))
        if effect is Effect.DENY:
            await house.finished(turn.turn_id)
        else:
            await house.until(turn.turn_id, TurnState.WAITING)
        [asked] = await service_of(house).list()
        assert asked.session_key != key
        assert (asked.status, asked.terms.quorum) in ((Status.DENIED, 1), (Status.PENDING, 3))
        assert [each.id for each in await service_of(house).rules()] == ["several", "here"]


async def test_vote_of_somebody_who_turns_out_to_have_asked_counts_no_more(store_url: str) -> None:
    async with opened(store_url, mode=Mode.STRICT) as house:
        turn = await house.say("!approve send", source=writes(PHONE))
        await house.until(turn.turn_id, TurnState.WAITING)
        [asked] = await service_of(house).list(status=Status.PENDING)
        assert "1 said yes" in await house.ask(f"/approve {asked.id}", source=writes(LID))
        await house.sessions.learn_whatsapp_alias(LID, PHONE)
        voted = await service_of(house).approve(asked.id, approver("token:bob"))
        assert (voted.status, voted.approvals) == (Status.PENDING, ("token:bob",))
        assert (await service_of(house).approve(asked.id, approver("token:cho"))).status is Status.APPROVED
