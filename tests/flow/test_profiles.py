"""Profiles: whose agent answers, with what, and that no other one ever does."""

import re
from typing import Any

import pytest
from msgspec.structs import replace

from frontdesk import (
    GatewayConfig,
    HomeChannel,
    Platform,
    PlatformConfig,
    SessionSource,
    SessionStore,
    errors,
)
from frontdesk.agents import scripted
from frontdesk.app.gateway import Gateway
from frontdesk.contracts.agents import Abilities
from frontdesk.model import events
from frontdesk.model.access import Access, Strangers
from frontdesk.model.confirmations import Status
from frontdesk.model.deliveries import DeliveryKind
from frontdesk.model.policies import SessionResetPolicy
from frontdesk.model.routing import Profile, RoutingRow
from frontdesk.model.running import Running
from frontdesk.model.turns import TurnState
from tests.flow.harness import House, Notebook, open_house

HELP = Profile(
    accounts=("matrix@help",),
    prompt="You help.",
    working_dir="/srv/help",
    reset_policy=SessionResetPolicy(max_messages=50),
)
ROUTES = (
    RoutingRow(platform="matrix", chat="room", profile="help", model="large", prompt="Be brief."),
    RoutingRow(platform="matrix", person="bob", profile="help"),
    RoutingRow(platform="matrix", chat="small", limits={"max_messages": 4}),
)
CONFIG = GatewayConfig(multiplex_profiles=True, profiles={"help": HELP}, routes=ROUTES)
RUNNING = Running(drain_seconds=1.0, working_dir="/srv/main", extra_prompt="You are everybody's.")


class Named(scripted.Driver):
    """An agent that says who it is, and remembers its assignments."""

    def __init__(self, name: str) -> None:
        super().__init__(scripted.ScriptedOptions(script=(f"I am {name}.",)))
        self.given: list[events.Assignment] = []

    def run(self, turn: events.Assignment, line: Any) -> Any:
        self.given.append(turn)
        return super().run(turn, line)


def house(url: str, config: GatewayConfig = CONFIG, **parts: Any) -> Any:
    agents: dict[str, Any] = {"agent": Named("main"), "profiles": {"help": Named("help")}} | parts
    return open_house(url, config=config, running=RUNNING, **agents)


async def test_account_that_received_a_message_chooses_its_agent(store_url: str) -> None:
    main, helper = Named("main"), Named("help")
    channels: dict[str, Any] = {"notebook": Notebook(account="help"), "others": [Notebook()]}
    async with house(store_url, agent=main, profiles={"help": helper}, **channels) as opened:
        assert await opened.ask("hello") == "I am help."
        assert await opened.ask("hello", source=opened.source(account=None)) == "I am main."
        key = await opened.key()
        session = await opened.sessions.get_session(key)
    assert key == "agent:help:matrix@help:dm:chat-ann"
    assert session.origin.profile == "help"
    given, usual = helper.given[0], main.given[0]
    assert (given.working_dir, usual.working_dir) == ("/srv/help", "/srv/main")
    assert "You help." in given.system
    assert "everybody" not in given.system
    assert "You are everybody's." in usual.system
    assert "You help." not in usual.system
    assert opened.sessions.policy_at(session.origin).max_messages == 50


async def test_administrator_of_a_profile_lets_nobody_in_elsewhere(store_url: str) -> None:
    access = Access(administrators=("root", "matrix@help:root"), strangers=Strangers.PAIR)
    config = GatewayConfig(multiplex_profiles=True, profiles={"help": HELP}, access={"matrix": access})
    ours, usual = (
        Notebook(account=account, authenticates=False, reliable_sender_ids=True) for account in ("help", None)
    )
    async with house(store_url, config, notebook=ours, others=[usual]) as opened:
        with pytest.raises(errors.NotAllowed):
            await opened.say("hello", source=opened.source(user="eve", account=None))
        [offer] = await usual.wait_for(1, "notice")
        [code] = re.findall(r"[A-Z2-9]{4}-[A-Z2-9]{4}", offer)
        assert "Nobody waits" in await opened.ask("/pair", user="root")
        assert "Nothing waits for this code" in await opened.ask(f"/pair {code}", user="root")
        everywhere = opened.source(user="root", account=None)
        assert "matrix:eve" in await opened.ask("/pair", source=everywhere)
        assert "is let in" in await opened.ask(f"/pair {code}", source=everywhere)


async def test_route_sends_a_chat_to_a_profile_with_a_model_and_a_prompt_of_its_own(store_url: str) -> None:
    helper = Named("help")
    async with house(store_url, profiles={"help": helper}) as opened:
        room = opened.source(chat="room", chat_type="group")
        assert await opened.ask("hello", source=room) == "I am help."
        assert 'uses "large"' in await opened.ask("/model", source=room)
        told = await opened.sessions.explain(room)
    [given] = helper.given
    assert given.model == {"model": "large"}
    assert "Be brief." in given.system
    assert told["profile"] == {"name": "help", "why": "row 1 (matrix, chat room)"}
    assert told["routes"]["model"] == "row 1 (matrix, chat room)"


async def test_profile_of_a_person_never_answers_in_a_group(store_url: str) -> None:
    async with house(store_url) as opened:
        assert await opened.ask("hello", "bob") == "I am help."
        group = opened.source("bob", chat="hall", chat_type="group")
        assert await opened.ask("hello", source=group) == "I am main."


async def test_conversation_does_not_go_on_with_another_profiles_agent(store_url: str) -> None:
    helper = Named("help")
    async with house(store_url, profiles={"help": helper}) as opened:
        await opened.ask("a secret of main")
        await opened.ask("/title Plans")
        helping = opened.source(chat="room")  # the same person, where another profile answers
        await opened.ask("hello", source=helping)
        assert "with another profile" in await opened.ask("/resume Plans", source=helping)
        await opened.ask("go on", source=helping)
    assert "secret" not in str([given.messages for given in helper.given])


async def test_agent_sends_through_the_accounts_of_its_own_profile_alone(
    store_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    homes = {
        name: PlatformConfig(home_channel=HomeChannel(platform=Platform(name), chat_id="home", name="Home"))
        for name in ("matrix", "telegram")
    }
    theirs = Notebook("telegram")
    channels: dict[str, Any] = {"notebook": Notebook(account="help"), "others": [theirs]}
    async with house(store_url, replace(CONFIG, platforms=homes), **channels) as opened:
        await opened.ask("!send matrix ours")
        await opened.ask("!send telegram theirs")
        await opened.ask("!send telegram:1 theirs")
        told = await opened.ask("!show system")
        await opened.notebook.wait_for(5)
    assert caplog.text.count("send_refused") == 2
    assert ("home", "help", "ours") in [
        (each.to.chat_id, each.to.account, each.text) for each in opened.notebook.sent
    ]
    assert theirs.sent == []
    assert "**Connected platforms:** matrix" in told
    assert "telegram" not in told


async def test_approver_of_a_profile_decides_about_its_own_agent_alone(store_url: str) -> None:
    own = Access(approvers=("carl",)).of_account("matrix", "help")
    config = replace(CONFIG, access={"matrix": Access(approvers=("dora",)), "matrix@help": own})
    helping, usual = (Notebook(account=each, reliable_sender_ids=True) for each in ("help", None))
    async with house(store_url, config, notebook=helping, others=[usual]) as opened:
        parts = opened.gateway.parts

        async def asked(source: SessionSource) -> str:
            receipt = await opened.say("!approve remove_file", source=source)
            await opened.until(receipt.turn_id, TurnState.WAITING)
            [found] = await parts.confirmations.list(10, Status.PENDING)
            return str(found.id)

        theirs = await asked(opened.source(account=None))
        assert "not asked for by the agent here" in await opened.ask(f"/approve {theirs}", "carl")
        assert "Only approvers" in await opened.ask(f"/approve {theirs}", "dora")  # not of this account
        elsewhere = opened.source("dora", account=None)
        assert "is approved" in await opened.ask(f"/approve {theirs}", source=elsewhere)
        ours = await asked(opened.source())
        assert "is approved" in await opened.ask(f"/approve {ours}", "carl")


async def test_administrator_of_a_profile_does_not_see_the_conversations_of_others(store_url: str) -> None:
    own = Access(administrators=("carl",)).of_account("matrix", "help")
    config = replace(CONFIG, access={"matrix": Access(administrators=("dora",)), "matrix@help": own})
    helping, usual = (Notebook(account=each, reliable_sender_ids=True) for each in ("help", None))
    async with house(store_url, config, notebook=helping, others=[usual]) as opened:
        await opened.ask("a secret of main", source=opened.source(account=None))
        assert "where the default one answers" in await opened.ask("/search --all secret", "carl")
        assert "where the default one answers" in await opened.ask("/sessions --all", "carl")
        assert "secret" in await opened.ask(
            "/search --all secret", source=opened.source("dora", account=None)
        )


async def test_profile_that_is_not_there_is_refused(store_url: str) -> None:
    main = Named("main")
    async with house(store_url, agent=main) as opened:
        with pytest.raises(errors.UnknownProfile, match="no profile 'halp'"):
            await opened.say("hello", source=opened.source(profile="halp"))
        assert opened.gateway.parts.refusals.counts == {"UnknownProfile": 1}
    assert main.given == []


async def test_message_of_a_profile_that_is_gone_fails_and_is_not_answered_by_another(store_url: str) -> None:
    async with await SessionStore.open(store_url, CONFIG) as sessions:
        left = Notebook(account="help")
        agents = {"help": Named("help")}
        waiting = Gateway(sessions, Named("main"), [left], profiles=agents)  # not started: the message waits
        receipt = await waiting.desk.accept(House(waiting, left).incoming("hello"))
    main, notebook = Named("main"), Notebook(account="help")
    async with house(store_url, GatewayConfig(), agent=main, profiles={}, notebook=notebook) as opened:
        turn = await opened.finished(receipt.turn_id)
        [said] = await opened.store.deliveries.of_turn(turn.id)
    assert (turn.state, said.kind) == (TurnState.FAILED, DeliveryKind.NOTICE)
    assert "no profile 'help'" in said.text
    assert main.given == []


async def test_model_that_the_agent_cannot_have_fails_the_turn(store_url: str) -> None:
    class Fixed(Named):
        abilities = Abilities(models=False)

    async with house(store_url, profiles={"help": Fixed("help")}) as opened:
        receipt = await opened.say("hello", source=opened.source(chat="room", chat_type="group"))
        turn = await opened.finished(receipt.turn_id)
    assert turn.state is TurnState.FAILED
    assert "cannot be given the model large" in (turn.error or "")


async def test_limit_of_a_route_ends_the_session_of_its_chat(store_url: str) -> None:
    async with house(store_url) as opened:
        small = opened.source(chat="small")
        key = await opened.sessions.session_key_for(small)
        await opened.ask("one", source=small)
        first = await opened.sessions.peek_session_id(key)
        await opened.ask("two", source=small)
        await opened.ask("three", source=small)
        assert await opened.sessions.peek_session_id(key) != first
