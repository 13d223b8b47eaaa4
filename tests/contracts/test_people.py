"""People: who is let in, strangers, pairing and linking, over every store and across restarts."""

import asyncio
import re
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, closing
from typing import Any

import pytest

from frontdesk import GatewayConfig, Platform, Principal, SessionSource, SessionStore, errors, plugins
from frontdesk.flow.authorization import ANSWER, FULL, Authorization, owner_of_terminal
from frontdesk.model import codes
from frontdesk.model.access import Access, AccessRule, AccessVerdict, Grant, Role, Strangers
from frontdesk.stores.store import Store
from frontdesk.testing import SettableClock
from tests import schemas
from tests.contracts.conftest import EditStore
from tests.contracts.samples import direct, in_group, user_says

OWNER = owner_of_terminal()
PAIRS = GatewayConfig(
    access={
        "telegram": Access(strangers=Strangers.PAIR, administrators=("root",)),
        "discord": Access(strangers=Strangers.PAIR),
        "slack": Access(strangers=Strangers.ANSWER),
    }
)
CODE = re.compile(r"\b[A-Z2-9]{4}-[A-Z2-9]{4}\b")
PHONE, LID = "4915112345678", "987654321098765"


class Desk:
    """The parts under test, over one store."""

    def __init__(self, store: Store, config: GatewayConfig, clock: SettableClock) -> None:
        self.store = store
        self.people = Authorization(store, config, clock=clock)
        self.sessions = SessionStore(store, config, clock=clock)

    async def check(self, source: SessionSource, **flags: Any) -> AccessVerdict:
        return await self.people.check(source, **flags)

    async def write(self, source: SessionSource) -> str | None:
        """What a stranger hears."""
        return await self.people.answer_stranger(source, await self.check(source))

    async def code_for(self, source: SessionSource) -> str:
        return code_in(await self.write(source))

    async def pair(self, source: SessionSource, role: Role = Role.USER) -> Grant:
        return await self.people.approve(await self.code_for(source), OWNER, role)

    async def link(self, one: SessionSource, other: SessionSource) -> frozenset[str]:
        code = await self.people.begin_link(one, await self.check(one))
        return await self.people.link(code, await self.check(other))


OpenDesk = Callable[..., Awaitable[Desk]]


def code_in(text: str | None) -> str:
    (found,) = CODE.findall(text or "")
    return str(found)


def wrong_code(number: int = 0) -> str:
    return f"WRNG{number:04d}".replace("0", "A").replace("1", "B")


@pytest.fixture
async def open_desk(store_url: str, clock: SettableClock) -> AsyncIterator[OpenDesk]:
    """Opens the store, which is the same at every call; the one before is closed."""
    async with AsyncExitStack() as opened:

        async def open_one(config: GatewayConfig = PAIRS) -> Desk:
            await opened.aclose()
            open_store: Any = plugins.load_store(store_url)
            store = await opened.enter_async_context(await open_store(store_url))
            return Desk(store, config, clock)

        yield open_one


@pytest.fixture
async def desk(open_desk: OpenDesk) -> Desk:
    return await open_desk()


@pytest.fixture
async def nodes(postgres_url: str, clock: SettableClock) -> AsyncIterator[list[Desk]]:
    """Two nodes on one PostgreSQL schema."""
    url = schemas.fresh_schema(postgres_url)
    open_store: Any = plugins.load_store(url)
    async with AsyncExitStack() as opened:
        stores = [await opened.enter_async_context(await open_store(url)) for _ in range(2)]
        yield [Desk(store, PAIRS, clock) for store in stores]


def root() -> SessionSource:
    """An administrator by the settings."""
    return direct("root")


# grants


async def test_stranger_is_refused_and_counted(desk: Desk) -> None:
    verdict = await desk.check(direct("ann"))
    assert (verdict.allowed, verdict.rule) == (False, AccessRule.STRANGER)
    assert desk.people.refused == {"stranger": 1}


async def test_platform_without_settings_lets_nobody_in_and_says_nothing(open_desk: OpenDesk) -> None:
    desk = await open_desk(GatewayConfig())
    assert not (await desk.check(direct("ann"))).allowed
    assert await desk.write(direct("ann")) is None


async def test_grant_counts_at_once_and_until_it_is_revoked(desk: Desk) -> None:
    principal = Principal(platform=Platform.TELEGRAM, user_id="ann")
    grant = await desk.people.grant(principal, Role.APPROVER, OWNER)
    assert (await desk.check(direct("ann"))).role is Role.APPROVER
    assert (await desk.check(in_group("ann"))).rule is AccessRule.PAIRED
    assert await desk.people.list_people(OWNER) == [grant]
    assert await desk.people.revoke(principal.id, OWNER)
    assert not (await desk.check(direct("ann"))).allowed
    assert not await desk.people.revoke(principal.id, OWNER)
    assert await desk.people.list_people(OWNER) == []


async def test_grants_outlive_a_restart(open_desk: OpenDesk) -> None:
    desk = await open_desk()
    grant = await desk.pair(direct("ann", user_name="Ann"))
    desk = await open_desk()
    assert (await desk.check(direct("ann"))).rule is AccessRule.PAIRED
    assert await desk.people.list_people(OWNER) == [grant]
    assert (grant.name, grant.granted_by, grant.platform) == ("Ann", "local", "telegram")


async def test_grant_of_one_account_or_platform_is_none_on_another(desk: Desk) -> None:
    await desk.pair(direct("ann"))
    for other in (
        direct("ann", account="second"),
        direct("ann", platform=Platform.DISCORD),
        direct("Ann"),
        direct("ann\u200b"),
        direct(None, chat_id="chat-ann"),  # type: ignore[arg-type]
    ):
        assert not (await desk.check(other)).allowed


async def test_only_administrators_decide_about_others(desk: Desk) -> None:
    await desk.pair(direct("ann"), Role.APPROVER)
    code = await desk.code_for(direct("bob"))
    principal = Principal(platform=Platform.TELEGRAM, user_id="cid")
    for verdict in (await desk.check(direct("ann")), await desk.check(direct("bob"))):
        for attempt in (
            desk.people.approve(code, verdict),
            desk.people.grant(principal, Role.ADMINISTRATOR, verdict),
            desk.people.revoke("telegram:ann", verdict),
            desk.people.list_people(verdict),
            desk.people.pending(verdict),
        ):
            with pytest.raises(errors.NotAllowed):
                await attempt
    assert (await desk.people.approve(code, await desk.check(root()))).granted_by == "telegram:root"


async def test_role_of_a_newer_version_lets_nobody_in(open_desk: OpenDesk, edit_store: EditStore) -> None:
    desk = await open_desk()
    await desk.pair(direct("ann"))
    await desk.pair(direct("bob"))
    await desk.store.close()
    await edit_store("UPDATE grants SET role = 'emperor' WHERE principal = 'telegram:ann'")
    desk = await open_desk()
    assert not (await desk.check(direct("ann"))).allowed
    assert [grant.principal for grant in await desk.people.list_people(OWNER)] == ["telegram:bob"]


# strangers


async def test_stranger_hears_one_answer_a_day(desk: Desk, clock: SettableClock) -> None:
    bob = direct("bob", platform=Platform.SLACK)
    assert await desk.write(bob) == ANSWER
    for _ in range(24):
        assert await desk.write(bob) is None
        clock.advance(minutes=59)
    clock.advance(minutes=24)
    assert await desk.write(bob) == ANSWER


async def test_answer_was_given_before_the_restart(open_desk: OpenDesk) -> None:
    desk = await open_desk()
    assert await desk.write(direct("bob"))
    desk = await open_desk()
    assert await desk.write(direct("bob")) is None


async def test_many_messages_at_once_are_answered_once(desk: Desk) -> None:
    heard = await asyncio.gather(*(desk.write(direct("bob")) for _ in range(20)))
    assert sum(text is not None for text in heard) == 1
    assert len(await desk.people.pending(OWNER)) == 1


async def test_crowd_of_strangers_cannot_make_us_send_without_end(desk: Desk, clock: SettableClock) -> None:
    crowd = [direct(f"u{number}", platform=Platform.SLACK) for number in range(codes.MOST_ANSWERS + 20)]
    heard = await asyncio.gather(*map(desk.write, crowd))
    assert sum(text is not None for text in heard) == codes.MOST_ANSWERS
    assert await desk.write(direct("bob"))
    clock.advance(days=1)
    assert await desk.write(direct("another", platform=Platform.SLACK)) == ANSWER


async def test_nobody_else_is_answered(desk: Desk) -> None:
    await desk.pair(direct("ann"))
    assert await desk.write(direct("ann")) is None
    assert await desk.write(in_group("bob")) is None
    assert await desk.write(direct("bot", is_bot=True)) is None
    assert await desk.write(direct(None, chat_id="c")) is None  # type: ignore[arg-type]


# pairing


async def test_stranger_is_let_in_by_the_code_they_were_shown(desk: Desk) -> None:
    code = await desk.code_for(direct("ann", user_name="Ann\x00\nthe \u202egreat"))
    (pending,) = await desk.people.pending(OWNER)
    assert (pending.principal, pending.platform) == ("telegram:ann", "telegram")
    assert pending.name == "Ann  the  great"
    grant = await desk.people.approve(f" {code.lower()} ", OWNER)
    assert (grant.principal, grant.role) == ("telegram:ann", Role.USER)
    assert (await desk.check(direct("ann"))).rule is AccessRule.PAIRED
    assert not (await desk.check(direct("bob"))).allowed
    assert await desk.people.pending(OWNER) == []


async def test_code_waits_through_a_restart(open_desk: OpenDesk) -> None:
    desk = await open_desk()
    code = await desk.code_for(direct("ann"))
    desk = await open_desk()
    assert (await desk.people.approve(code, OWNER)).principal == "telegram:ann"


async def test_code_is_used_once(desk: Desk) -> None:
    code = await desk.code_for(direct("ann"))
    await desk.people.approve(code, OWNER)
    await desk.people.revoke("telegram:ann", OWNER)
    with pytest.raises(errors.WrongCode):
        await desk.people.approve(code, OWNER)
    assert not (await desk.check(direct("ann"))).allowed


async def test_code_expires_after_an_hour(desk: Desk, clock: SettableClock) -> None:
    early, late = await desk.code_for(direct("ann")), await desk.code_for(direct("bob"))
    clock.advance(minutes=59, seconds=59)
    await desk.people.approve(early, OWNER)
    clock.advance(seconds=1)
    assert await desk.people.pending(OWNER) == []
    with pytest.raises(errors.WrongCode):
        await desk.people.approve(late, OWNER)
    assert not (await desk.check(direct("bob"))).allowed


async def test_three_people_of_a_platform_wait_at_most(desk: Desk, clock: SettableClock) -> None:
    waiting = [await desk.code_for(direct(f"u{number}")) for number in range(3)]
    assert await desk.write(direct("late")) == FULL
    assert await desk.code_for(direct("elsewhere", platform=Platform.DISCORD))
    await desk.people.approve(waiting[0], OWNER)
    assert await desk.code_for(direct("next"))
    clock.advance(hours=1)
    assert await desk.code_for(direct("after"))
    assert len(await desk.people.pending(OWNER)) == 1


async def test_strangers_who_take_every_place_give_way_after_ten_minutes(
    desk: Desk, clock: SettableClock
) -> None:
    for number in range(3):
        assert await desk.code_for(direct(f"flood{number}"))
        clock.advance(seconds=1)
    assert await desk.write(direct("late")) == FULL
    assert await desk.write(direct("late")) is None
    clock.advance(minutes=10)
    code = await desk.code_for(direct("late"))
    assert [each.principal for each in await desk.people.pending(OWNER)] == [
        "telegram:flood1",
        "telegram:flood2",
        "telegram:late",
    ]
    assert await desk.code_for(direct("flood0"))  # who gave way may ask anew
    assert (await desk.people.approve(code, OWNER)).principal == "telegram:late"


async def test_accounts_of_a_platform_share_the_places(desk: Desk) -> None:
    for number in range(3):
        assert await desk.code_for(direct("ann", account=f"bot{number}"))
    assert await desk.write(direct("ann", account="bot4")) == FULL


async def test_new_code_takes_the_place_of_the_persons_last_one(desk: Desk, clock: SettableClock) -> None:
    old = [await desk.code_for(direct(f"u{number}")) for number in range(3)]
    pending = await desk.people.pending(OWNER)
    fresh = codes.new_code()
    assert await desk.store.people.begin_pairing(pending[0], codes.seal(fresh), clock.now())
    assert len(await desk.people.pending(OWNER)) == 3
    with pytest.raises(errors.WrongCode):
        await desk.people.approve(old[0], OWNER)
    assert (await desk.people.approve(fresh, OWNER)).principal == "telegram:u0"


async def test_limit_holds_when_all_come_at_once(desk: Desk) -> None:
    heard = await asyncio.gather(*(desk.write(direct(f"u{number}")) for number in range(30)))
    assert sum(bool(CODE.search(text or "")) for text in heard) == codes.MOST_PENDING
    assert len(await desk.people.pending(OWNER)) == codes.MOST_PENDING


async def test_grant_without_a_code_makes_the_code_void(desk: Desk) -> None:
    code = await desk.code_for(direct("ann"))
    await desk.people.grant(Principal(platform=Platform.TELEGRAM, user_id="ann"), Role.ADMINISTRATOR, OWNER)
    with pytest.raises(errors.WrongCode):
        await desk.people.approve(code, OWNER)
    assert (await desk.check(direct("ann"))).role is Role.ADMINISTRATOR


async def test_code_is_nowhere_in_the_store(open_desk: OpenDesk, store_url: str) -> None:
    desk = await open_desk()
    shown = await desk.code_for(direct("ann"))
    code = codes.clean(shown)
    await desk.store.close()
    if store_url.startswith("sqlite"):
        with closing(sqlite3.connect(store_url.removeprefix("sqlite:///"))) as file:
            dump = "\n".join(map(str, file.execute("SELECT * FROM pairings").fetchall()))
    else:
        async with schemas.connected(store_url) as connection:
            dump = str(await connection.fetch("SELECT * FROM pairings"))
    assert "telegram:ann" in dump
    assert code not in dump
    assert shown not in dump
    assert code.encode().hex() not in dump


# guessing


async def guess(desk: Desk, by: AccessVerdict, times: int) -> list[type[BaseException]]:
    tries = [desk.people.approve(wrong_code(number), by) for number in range(times)]
    return [type(found) for found in await asyncio.gather(*tries, return_exceptions=True)]  # type: ignore[misc]


async def test_fifth_wrong_code_locks_for_an_hour(desk: Desk, clock: SettableClock) -> None:
    code = await desk.code_for(direct("ann"))
    for number in range(4):
        with pytest.raises(errors.WrongCode):
            await desk.people.approve(wrong_code(number), OWNER)
    with pytest.raises(errors.LockedOut, match="2026-01-05 13:00 UTC"):
        await desk.people.approve(wrong_code(4), OWNER)
    with pytest.raises(errors.LockedOut):
        await desk.people.approve(code, OWNER)
    assert not (await desk.check(direct("ann"))).allowed
    clock.advance(hours=1)
    later = await desk.code_for(direct("bob"))
    assert (await desk.people.approve(later, OWNER)).principal == "telegram:bob"


async def test_lock_outlives_a_restart(open_desk: OpenDesk) -> None:
    desk = await open_desk()
    code = await desk.code_for(direct("ann"))
    await guess(desk, OWNER, 3)
    desk = await open_desk()
    await guess(desk, OWNER, 2)
    desk = await open_desk()
    with pytest.raises(errors.LockedOut):
        await desk.people.approve(code, OWNER)


async def test_guesses_at_once_are_all_counted(desk: Desk) -> None:
    found = await guess(desk, OWNER, 30)
    assert found.count(errors.WrongCode) == codes.MOST_FAILURES - 1
    assert found.count(errors.LockedOut) == 30 - (codes.MOST_FAILURES - 1)


async def test_lock_of_one_place_leaves_the_others_open(desk: Desk) -> None:
    code = await desk.code_for(direct("ann"))
    await guess(desk, await desk.check(root()), 10)
    with pytest.raises(errors.LockedOut):
        await desk.people.approve(code, await desk.check(root()))
    assert (await desk.people.approve(code, OWNER)).principal == "telegram:ann"


async def test_used_and_odd_codes_count_as_failures(desk: Desk) -> None:
    code = await desk.code_for(direct("ann"))
    await desk.people.approve(code, OWNER)
    for typed in (code, "", "x" * 10_000, "\x00'; DROP TABLE grants; --"):
        with pytest.raises(errors.WrongCode):
            await desk.people.approve(typed, OWNER)
    with pytest.raises(errors.LockedOut):
        await desk.people.approve("%", OWNER)


async def test_failures_of_an_hour_ago_do_not_count(desk: Desk, clock: SettableClock) -> None:
    for _ in range(4):
        await guess(desk, OWNER, 4)
        clock.advance(hours=1)
    assert (await desk.pair(direct("ann"))).principal == "telegram:ann"


# several nodes


async def approve_on(node: Desk, code: str, by: AccessVerdict) -> Grant | None:
    try:
        return await node.people.approve(code, by)
    except errors.WrongCode:
        return None


async def test_of_two_nodes_one_uses_a_code_up(nodes: list[Desk], clock: SettableClock) -> None:
    for number in range(10):
        code = await nodes[0].code_for(direct(f"u{number}"))
        by = [OWNER, await nodes[1].check(root())]
        found = await asyncio.gather(*(approve_on(nodes[each], code, by[each]) for each in range(2)))
        assert sum(grant is not None for grant in found) == 1
        await nodes[0].people.revoke(f"telegram:u{number}", OWNER)
        if number % 4 == 3:  # losing counts as a wrong code; go on after it is forgotten
            clock.advance(hours=1)


async def test_limits_hold_across_nodes(nodes: list[Desk]) -> None:
    writing = (nodes[number % 2].write(direct(f"u{number // 2}")) for number in range(40))
    heard = [text for text in await asyncio.gather(*writing) if text]
    assert len(heard) == 20
    assert sum(bool(CODE.search(text)) for text in heard) == codes.MOST_PENDING


async def test_guesses_are_counted_across_nodes(nodes: list[Desk]) -> None:
    found = await asyncio.gather(*(guess(node, OWNER, 10) for node in nodes))
    assert sum(each.count(errors.WrongCode) for each in found) == codes.MOST_FAILURES - 1


async def test_revoked_on_one_node_is_refused_on_the_other(nodes: list[Desk]) -> None:
    await nodes[0].pair(direct("ann"))
    assert (await nodes[1].check(direct("ann"))).allowed
    await nodes[0].people.revoke("telegram:ann", OWNER)
    assert not (await nodes[1].check(direct("ann"))).allowed


# links


ANN, ANNA, ANNE = direct("ann"), direct("anna", platform=Platform.DISCORD), direct("anne", account="second")


@pytest.fixture
async def known(desk: Desk) -> Desk:
    """Three people were let in."""
    for source in (ANN, ANNA, ANNE):
        await desk.pair(source)
    return desk


async def test_linked_people_see_each_others_sessions(known: Desk) -> None:
    entry = await known.sessions.get_or_create_session(ANN)
    await known.sessions.append_to_transcript(entry.session_id, user_says("heron"))
    before = await known.sessions.viewer_for(ANNA)
    assert await known.sessions.search("heron", before) == []
    assert await known.link(ANN, ANNA) == {"telegram:ann", "discord:anna"}
    after = await known.sessions.viewer_for(ANNA)
    assert after.owners == before.owners | {"telegram:ann"}
    assert len(await known.sessions.search("heron", after)) == 1
    assert await known.sessions.search("heron", await known.sessions.viewer_for(ANNE)) == []


async def test_links_join_all_that_were_linked_and_outlive_a_restart(
    known: Desk, open_desk: OpenDesk
) -> None:
    fourth = direct("anja", platform=Platform.DISCORD)
    await known.pair(fourth)
    await known.link(ANN, ANNA)
    await known.link(ANNE, fourth)
    everybody = {"telegram:ann", "discord:anna", "telegram@second:anne", "discord:anja"}
    assert await known.link(ANNA, fourth) == everybody
    known = await open_desk()
    for source in (ANN, ANNA, ANNE, fourth):
        principal = Principal.of(source)
        assert principal
        assert await known.sessions.store.people.linked(principal.id) == everybody


async def test_unlinked_person_is_alone_and_the_others_stay_linked(known: Desk) -> None:
    await known.link(ANN, ANNA)
    await known.link(ANN, ANNE)
    assert await known.people.unlink(await known.check(ANNA))
    assert not await known.people.unlink(await known.check(ANNA))
    assert await known.store.people.linked("discord:anna") == {"discord:anna"}
    assert await known.store.people.linked("telegram:ann") == {"telegram:ann", "telegram@second:anne"}
    assert await known.people.unlink(await known.check(ANNE))
    assert not await known.people.unlink(await known.check(ANN))


async def test_whoever_is_revoked_is_linked_to_nobody(known: Desk) -> None:
    """An id may come to belong to somebody else."""
    await known.link(ANN, ANNA)
    await known.people.revoke("discord:anna", OWNER)
    assert await known.store.people.linked("telegram:ann") == {"telegram:ann"}
    assert await known.store.people.linked("discord:anna") == {"discord:anna"}


async def test_link_code_is_shown_in_private_and_to_the_known_alone(known: Desk) -> None:
    crowd = in_group("ann")
    with pytest.raises(errors.NotAllowed, match="private"):
        await known.people.begin_link(crowd, await known.check(crowd))
    stranger = direct("eve")
    code = await known.people.begin_link(ANN, await known.check(ANN))
    with pytest.raises(errors.NotAllowed):
        await known.people.begin_link(stranger, await known.check(stranger))
    with pytest.raises(errors.NotAllowed):
        await known.people.link(code, await known.check(stranger))


async def test_link_gives_no_role(known: Desk) -> None:
    code = await known.people.begin_link(root(), await known.check(root()))
    await known.people.link(code, await known.check(ANN))
    assert (await known.check(ANN)).role is Role.USER


async def test_code_of_one_kind_is_none_of_the_other(known: Desk) -> None:
    to_link = await known.people.begin_link(ANN, await known.check(ANN))
    to_pair = await known.code_for(direct("eve"))
    with pytest.raises(errors.WrongCode):
        await known.people.approve(to_link, OWNER)
    with pytest.raises(errors.WrongCode):
        await known.people.link(to_pair, await known.check(ANNA))
    assert not (await known.check(direct("eve"))).allowed


async def test_own_code_expired_code_and_replaced_code_link_nobody(known: Desk, clock: SettableClock) -> None:
    ann, anna = await known.check(ANN), await known.check(ANNA)
    first = await known.people.begin_link(ANN, ann)
    with pytest.raises(errors.WrongCode):
        await known.people.link(first, ann)
    second = await known.people.begin_link(ANN, ann)
    with pytest.raises(errors.WrongCode):
        await known.people.link(first, anna)
    clock.advance(hours=1)
    with pytest.raises(errors.WrongCode):
        await known.people.link(second, anna)
    assert await known.store.people.linked("telegram:ann") == {"telegram:ann"}


async def test_guessing_a_link_locks_the_guesser_alone(known: Desk) -> None:
    code = await known.people.begin_link(ANN, await known.check(ANN))
    anna = await known.check(ANNA)
    for number in range(5):
        with pytest.raises((errors.WrongCode, errors.LockedOut)):
            await known.people.link(wrong_code(number), anna)
    with pytest.raises(errors.LockedOut):
        await known.people.link(code, anna)
    assert "telegram@second:anne" in await known.people.link(code, await known.check(ANNE))


async def test_link_codes_do_not_take_the_places_of_strangers(known: Desk) -> None:
    for source in (ANN, ANNE, root()):
        await known.people.begin_link(source, await known.check(source))
    assert await known.code_for(direct("eve"))
    assert len(await known.people.pending(OWNER)) == 1


async def test_links_made_at_once_make_one_person(desk: Desk) -> None:
    for number in range(10):
        chain = [direct(f"{name}{number}") for name in ("a", "b", "c", "d")]
        for source in chain:
            principal = Principal.of(source)
            assert principal is not None
            await desk.people.grant(principal, Role.USER, OWNER)
        verdicts = [await desk.check(source) for source in chain]
        shown = [await desk.people.begin_link(*each) for each in zip(chain, verdicts, strict=True)]
        typing = zip(shown, verdicts[1:], strict=False)
        await asyncio.gather(*(desk.people.link(code, verdict) for code, verdict in typing))
        everybody = {verdict.who for verdict in verdicts}
        assert await desk.store.people.linked(verdicts[0].who) == everybody


# WhatsApp


def whatsapp(jid: str, **fields: Any) -> SessionSource:
    return direct(**{"platform": Platform.WHATSAPP, "chat_id": jid, "user_id": jid} | fields)


BY_LID, BY_PHONE = whatsapp(f"{LID}@lid"), whatsapp(f"{PHONE}@s.whatsapp.net")
WHATSAPP = GatewayConfig(access={"whatsapp": Access(strangers=Strangers.PAIR)})


async def test_listed_whatsapp_person_is_let_in_under_every_learned_name(open_desk: OpenDesk) -> None:
    desk = await open_desk(GatewayConfig(access={"whatsapp": Access(allow=(f"{LID}@lid",))}))
    assert not (await desk.check(BY_PHONE)).allowed
    await desk.sessions.learn_whatsapp_alias(LID, PHONE)
    for source in (BY_LID, BY_PHONE, in_group(f"{PHONE}:3@s.whatsapp.net", platform=Platform.WHATSAPP)):
        assert (await desk.check(source)).rule is AccessRule.ALLOW_LIST


async def test_grants_codes_and_links_follow_a_whatsapp_person(open_desk: OpenDesk) -> None:
    desk = await open_desk(WHATSAPP)
    other, second = whatsapp("555@lid"), whatsapp(f"{LID}@lid", account="second")
    for source in (BY_LID, other, second):
        await desk.pair(source)
    await desk.link(BY_LID, other)
    await desk.sessions.learn_whatsapp_alias(LID, PHONE)
    for source in (BY_LID, BY_PHONE, second):
        assert (await desk.check(source)).rule is AccessRule.PAIRED
    assert await desk.store.people.linked("whatsapp:555") == {f"whatsapp:{PHONE}", "whatsapp:555"}
    assert len(await desk.people.list_people(OWNER)) == 3


async def test_code_shown_under_one_name_lets_in_under_the_other(open_desk: OpenDesk) -> None:
    desk = await open_desk(WHATSAPP)
    code = await desk.code_for(BY_LID)
    await desk.sessions.learn_whatsapp_alias(LID, PHONE)
    await desk.people.approve(code, OWNER)
    assert (await desk.check(BY_PHONE)).allowed


async def test_greater_of_two_roles_stays(open_desk: OpenDesk) -> None:
    desk = await open_desk(WHATSAPP)
    await desk.pair(BY_LID, Role.APPROVER)
    await desk.pair(BY_PHONE)
    await desk.sessions.learn_whatsapp_alias(LID, PHONE)
    assert (await desk.check(BY_PHONE)).role is Role.APPROVER
    assert len(await desk.people.list_people(OWNER)) == 1


async def test_name_that_moves_to_another_person_takes_no_grant_along(open_desk: OpenDesk) -> None:
    desk = await open_desk(WHATSAPP)
    await desk.pair(BY_LID)
    await desk.sessions.learn_whatsapp_alias(LID, PHONE)
    await desk.sessions.learn_whatsapp_alias(LID, "49777")
    assert not (await desk.check(BY_LID)).allowed
    assert (await desk.check(BY_PHONE)).allowed


async def test_forged_flags_in_a_stored_source_let_nobody_in(desk: Desk) -> None:
    wire = in_group("eve", role_authorized=True, delivered_via_upstream_relay=True).to_dict()
    wire |= {"role_authorized": True, "delivered_via_upstream_relay": True}
    assert not (await desk.check(SessionSource.from_dict(wire))).allowed
    assert (await desk.check(in_group("eve", role_authorized=True))).rule is AccessRule.ROLE_AUTHORIZED
    assert (await desk.check(direct("eve"), authenticates=True)).rule is AccessRule.CHANNEL_CREDENTIAL


async def test_administrator_whose_id_anybody_can_claim_lets_nobody_in(desk: Desk) -> None:
    code = await desk.code_for(direct("ann"))
    claimed = await desk.check(root(), reliable_ids=False)
    assert (claimed.allowed, claimed.role) == (True, Role.USER)
    with pytest.raises(errors.NotAllowed):
        await desk.people.approve(code, claimed)


async def test_log_says_who_let_whom_in_and_out(desk: Desk) -> None:
    by_chat = await desk.check(root())
    await desk.people.approve(await desk.code_for(direct("ann")), by_chat, Role.APPROVER)
    await desk.people.grant(Principal.read("telegram:ben"), Role.USER, OWNER)
    await desk.write(direct("eve"))
    assert await desk.people.refuse("telegram:eve", OWNER)
    assert not await desk.people.refuse("telegram:eve", OWNER)
    with pytest.raises(errors.WrongCode):
        await desk.people.approve(wrong_code(), by_chat)
    await desk.link(direct("ann"), direct("ben"))
    assert await desk.people.unlink(await desk.check(direct("ben")))
    assert not await desk.people.unlink(await desk.check(direct("ben")))
    await desk.link(direct("ann"), direct("ben"))
    assert await desk.people.separate("telegram:ben", by_chat)
    assert await desk.people.revoke("telegram:ann", by_chat)
    assert not await desk.people.revoke("telegram:ann", by_chat)
    rows = [row.entry for row in reversed(await desk.store.confirmations.audit_newest(100))]
    assert [(str(each.kind), each.actor, each.facts["person"]) for each in rows] == [
        ("person_let_in", "telegram:root", "telegram:ann"),
        ("person_let_in", "local", "telegram:ben"),
        ("person_refused", "local", "telegram:eve"),
        ("people_linked", "telegram:ben", "telegram:ben"),
        ("people_unlinked", "telegram:ben", "telegram:ben"),
        ("people_linked", "telegram:ben", "telegram:ben"),
        ("people_unlinked", "telegram:root", "telegram:ben"),
        ("person_revoked", "telegram:root", "telegram:ann"),
    ]
    assert [(each.facts["role"], each.facts["with_code"]) for each in rows[:2]] == [
        ("approver", True),
        ("user", False),
    ]
    assert rows[3].facts["other"] == "telegram:ann"
