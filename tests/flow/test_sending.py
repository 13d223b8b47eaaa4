"""Messages that answer nobody, through a whole gateway: from its owner and from agents."""

from collections.abc import AsyncIterator

import pytest

from frontdesk import GatewayConfig, Platform, SessionSource, errors
from frontdesk.agents import python
from frontdesk.app.office import Office
from frontdesk.contracts.agents import Line
from frontdesk.contracts.clock import SystemClock
from frontdesk.flow.sending import Outlets
from frontdesk.model import events
from frontdesk.model.platforms import HomeChannel, PlatformConfig
from frontdesk.model.routing import Profile
from frontdesk.model.running import Running
from tests.flow.harness import House, Notebook, open_house

HOME = HomeChannel(platform=Platform.MATRIX, chat_id="!ops:example.org", name="Operations")
CONFIG = GatewayConfig(platforms={"matrix": PlatformConfig(enabled=True, home_channel=HOME)})


def arrived(house: House) -> list[tuple[str, str | None, str]]:
    return [(each.to.chat_id, each.to.thread_id, each.text) for each in house.notebook.sent]


async def all_arrived(house: House, count: int) -> list[tuple[str, str | None, str]]:
    await house.notebook.wait_for(count)
    return arrived(house)


async def test_owner_sends_to_home_to_a_chat_to_a_thread_and_to_where_a_session_is(store_url: str) -> None:
    async with open_house(store_url, config=CONFIG) as house:
        await house.ask("hello")
        (session,) = await house.store.sessions.list_current(limit=1)
        office = Office.of_gateway(house.gateway)
        for to in ("matrix", "matrix:!r:example.org", "matrix:!r:example.org:$thread"):
            await office.send(to, f"to {to}")
        sent = await office.send("origin", "to you", session_id=session.id)
        assert (sent["state"], sent["turn_id"]) in {("pending", None), ("sending", None), ("sent", None)}
        assert sorted(await all_arrived(house, 5), key=str) == sorted(
            [
                ("chat-ann", None, "echo: hello"),
                ("!ops:example.org", None, "to matrix"),
                ("!r:example.org", None, "to matrix:!r:example.org"),
                ("!r:example.org", "$thread", "to matrix:!r:example.org:$thread"),
                ("chat-ann", None, "to you"),
            ],
            key=str,
        )
        (last,) = [each for each in house.notebook.sent if each.text == "to you"]
        assert (last.to.message_id, last.is_markdown) == (None, False)


async def test_home_may_be_a_thread(store_url: str) -> None:
    home = HomeChannel.from_dict({"platform": "matrix", "chat_id": "!ops:example.org", "thread_id": "$t"})
    assert home.to_dict()["thread_id"] == "$t"
    config = GatewayConfig(platforms={"matrix": PlatformConfig(enabled=True, home_channel=home)})
    async with open_house(store_url, config=config) as house:
        await Office.of_gateway(house.gateway).send("matrix", "home")
        assert await all_arrived(house, 1) == [("!ops:example.org", "$t", "home")]


async def test_same_key_to_the_same_chat_is_sent_once_in_its_pieces(store_url: str) -> None:
    async with open_house(store_url, notebook=Notebook(text_limit=10)) as house:
        office = Office.of_gateway(house.gateway)
        first = await office.send("matrix:!a:b", "one two three four", key="k")
        again = await office.send("matrix:!a:b", "one two three four", key="k")
        await office.send("matrix:!c:b", "other", key="k")
        assert (first["repeated"], again["repeated"], again["id"]) == (False, True, first["id"])
        assert sorted(text for _, _, text in await all_arrived(house, 3)) == [
            "one two",
            "other",
            "three four",
        ]


REFUSED = [
    *[
        (to, "x")
        for to in ("origin", "telegram", "telegram:1", "matrix@other:!a:b", "nowhere:1", "matrix:", "")
    ],
    *[("matrix:!a:b", text) for text in (" \n", "x" * 100_001, "\ud800")],
]


async def test_what_cannot_be_sent_is_refused_and_nothing_is_kept(store_url: str) -> None:
    async with open_house(store_url) as house:
        for to, text in REFUSED:
            with pytest.raises(errors.InvalidInput):
                await Office.of_gateway(house.gateway).send(to, text)
        assert await house.store.deliveries.counts() == {}


async def test_agent_sends_to_its_own_chat_and_home_and_nowhere_else_unasked(store_url: str) -> None:
    running = Running(drain_seconds=1.0, send_to=("matrix:!team:b", "matrix:!one:b:$t"))
    async with open_house(store_url, config=CONFIG, running=running) as house:
        for to in ("matrix", "origin", "matrix:!team:b", "matrix:!team:b:$x", "matrix:!one:b:$t"):
            assert await house.ask(f"!send {to} to {to}; ok") == "echo: ok"
        for to in ("matrix:!one:b", "matrix:!stranger:b", "telegram:1", "nonsense"):
            assert await house.ask(f"!send {to} to {to}; ok") == "echo: ok"
        told = {(chat, thread) for chat, thread, text in await all_arrived(house, 14) if "to " in text}
        assert told == {
            ("!ops:example.org", None),
            ("chat-ann", None),
            ("!team:b", None),
            ("!team:b", "$x"),
            ("!one:b", "$t"),
        }


async def test_what_an_agent_sends_is_no_answer_and_goes_once_however_often_the_turn_begins(
    store_url: str,
) -> None:
    async with open_house(store_url, config=CONFIG) as house:
        receipt = await house.say("!send matrix done; !send matrix done; !fail retryable 1; ok")
        await house.finished(receipt.turn_id)
        assert sorted(await all_arrived(house, 2), key=str) == [
            ("!ops:example.org", None, "done"),
            ("chat-ann", None, "echo: ok"),
        ]
        answers = await house.store.deliveries.of_turn(receipt.turn_id)
        assert [each.text for each in answers] == ["echo: ok"]


async def tell_and_listen(turn: events.Assignment, line: Line) -> AsyncIterator[object]:
    """An agent that sends with ids, and says what it heard of each."""
    for number, to in enumerate(("matrix", "matrix:!stranger:b", *["matrix"] * 20), 1):
        yield events.Send(to=to, text="the same", id=str(number))
        heard = await line.receive()
        assert isinstance(heard, events.Handed)
        yield f"{heard.id} {heard.taken}, "


async def test_agent_hears_what_was_taken_and_cannot_send_without_end(store_url: str) -> None:
    agent = python.Driver(python.Options(target=f"{__name__}:tell_and_listen", sends=True))
    async with open_house(store_url, config=CONFIG, agent=agent) as house:
        heard = dict(each.split() for each in (await house.ask("go")).rstrip(", ").split(", "))
        assert [number for number, taken in heard.items() if taken == "False"] == ["2", "21", "22"]
        sent = [each for each in await all_arrived(house, 20) if each[0] == "!ops:example.org"]
        assert len(sent) == 19


async def test_agent_is_told_where_it_can_send_exactly_when_it_can(store_url: str) -> None:
    running = Running(drain_seconds=1.0, send_to=("matrix:!team:b", "telegram:*"))
    for able in (False, True):
        agent = python.Driver(python.Options(target=f"{__name__}:show_system", sends=able))
        async with open_house(store_url, config=CONFIG, agent=agent, running=running) as house:
            told = await house.ask("go", event_id=f"able-{able}")
            assert ("Where you can send messages" in told, "- matrix:!team:b" in told) == (able, able)
            assert ("- origin: back to this chat" in told, "- telegram:chat_id: any chat" in told) == (
                able,
                able,
            )
            assert "cron" not in told


async def show_system(turn: events.Assignment, line: Line) -> str:
    return turn.system


def test_agent_speaks_through_no_account_of_another_profile() -> None:
    accounts = [("matrix", None), ("matrix", "help"), ("slack", "main"), ("slack", "help")]
    channels = {(name, account): Notebook(name, account) for name, account in accounts}
    homes = {
        name: PlatformConfig(home_channel=HomeChannel(platform=Platform(name), chat_id="!home", name="Home"))
        for name in ("matrix", "slack")
    }
    profiles = {"help": Profile(accounts=("matrix@help", "slack@help"))}
    config = GatewayConfig(platforms=homes, multiplex_profiles=True, profiles=profiles)
    outlets = Outlets(channels, config, SystemClock())
    for account, own in ((None, "main"), ("help", "help")):
        origin = _at(account)
        assert outlets.find_for_agent("slack", origin, ()).account == own
        assert outlets.find_for_agent("matrix", origin, ()).account == account
        others = {"slack@main", "slack@help", "matrix@help"} - {f"slack@{own}", f"matrix@{account}"}
        for to in others:
            with pytest.raises(errors.NotAllowed):
                outlets.find_for_agent(to, origin, ())
    # What all agents may be sent to is no way around it either.
    del channels["slack", "help"]
    assert outlets.find_for_agent("slack:C1", _at(None), ("slack:*",)).account == "main"
    assert outlets.listed_near(_at(None), ("slack:*", "matrix@help:!a:b")) == ["slack:*"]
    assert outlets.listed_near(_at("help"), ("slack:*", "matrix@help:!a:b")) == ["matrix@help:!a:b"]
    with pytest.raises(errors.NotAllowed):
        outlets.find_for_agent("slack:C1", _at("help"), ("slack:*",))


def _at(account: str | None) -> SessionSource:
    return SessionSource(platform=Platform.MATRIX, account=account, chat_id="!a:b", user_id="@a:b")
