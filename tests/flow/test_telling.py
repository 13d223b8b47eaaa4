"""What people see of a conversation, of requests and of each other is in the feed when it changes, once."""

from datetime import timedelta

from frontdesk.model import codes
from frontdesk.model.access import Grant, Role
from frontdesk.model.confirmations import Caller, CallerKind
from frontdesk.model.feed import FeedEvent, FeedKind, FeedPosition
from tests.flow.harness import House

AGENT = Caller(id="token:bot", kind=CallerKind.AGENT)
OPS = Caller(id="token:ops", kind=CallerKind.APPROVER)


class Reader:
    """Reads the feed on from where it was."""

    def __init__(self, house: House) -> None:
        self._feed = house.store.feed
        self._seen: set[FeedEvent] = set()

    async def told(self, kind: FeedKind) -> list[FeedEvent]:
        """What is new of a kind, as far as it is there: what was awaited is committed."""
        news = await self._feed.since(FeedPosition(), 10_000)
        fresh = [each for each in (*news.entries, *news.unsettled) if each not in self._seen]
        self._seen |= set(fresh)
        return [each for each in fresh if each.kind is kind]


async def test_session_is_told_whenever_it_is_another(house: House) -> None:
    reader = Reader(house)
    await house.ask("hello")
    key = await house.key()
    (started,) = await reader.told(FeedKind.SESSION)
    assert (started.session_key, started.owner, started.state) == (key, "matrix:ann", "open")
    for command in ("/title Herons", "/new", "/resume Herons"):
        await house.ask(command)
        (told,) = await reader.told(FeedKind.SESSION)
        assert (told.session_key, told.owner, told.state) == (key, "matrix:ann", "open"), command
    await house.ask("/undo")
    (undone,) = await reader.told(FeedKind.TRANSCRIPT)
    assert (undone.session_key, undone.session_id) == (key, started.session_id)
    await house.ask("/forget yes")
    states = [each.state for each in await reader.told(FeedKind.SESSION)]
    assert states[-1:] == ["ended"]


async def test_plain_message_is_told_as_its_turn_and_its_answer(house: House) -> None:
    await house.ask("hello")
    reader = Reader(house)
    await reader.told(FeedKind.TURN)
    receipt = await house.say("again")
    await house.finished(receipt.turn_id)
    await house.notebook.wait_for(2)
    turn = await reader.told(FeedKind.TURN)
    assert [each.state for each in turn] == ["running", "done"]
    assert {each.owner for each in turn} == {"matrix:ann"}


async def test_request_is_told_with_every_row_of_the_audit_log(house: House) -> None:
    service, reader = house.gateway.parts.confirmations, Reader(house)
    await house.ask("hello")
    data = {"action": "deploy", "description": "Deploy?", "session_key": await house.key()}
    asked = (await service.submit(data, AGENT)).confirmation
    await service.approve(asked.id, OPS, digest=asked.digest)
    await service.redeem(asked.id, AGENT, asked.digest)
    told = await reader.told(FeedKind.CONFIRMATION)
    assert [each.state for each in told] == ["submitted", "approved", "redeemed"]
    assert {(each.confirmation_id, each.owner) for each in told} == {(asked.id, "matrix:ann")}
    assert len(told) == len(await service.audit_newest(100))


async def test_people_are_told_when_they_ask_and_are_let_in_and_out(house: House) -> None:
    reader, now = Reader(house), house.gateway.parts.clock.now()
    people, until = house.store.people, now + timedelta(hours=1)
    pairing = codes.Pairing(
        principal="matrix:cy",
        kind=codes.CodeKind.PAIR,
        platform="matrix",
        created_at=now,
        expires_at=until,
        name="Cy",
    )
    assert await people.begin_pairing(pairing, codes.seal("ABCD2345"), now)
    grant = Grant(
        principal="matrix:cy", platform="matrix", role=Role.USER, granted_at=now, granted_by="x", name="Cy"
    )
    await people.grant(grant)
    assert await people.revoke("matrix:cy", now, by="local")
    assert not await people.revoke("matrix:cy", now, by="local")
    told = await reader.told(FeedKind.PERSON)
    assert [(each.owner, each.state) for each in told] == [
        ("matrix:cy", "asks"),
        ("matrix:cy", "user"),
        ("matrix:cy", "revoked"),
    ]
