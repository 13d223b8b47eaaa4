"""What is meant for the agent: in groups what is addressed to it, from bots nothing. The rest is heard."""

from pathlib import Path
from typing import Any

import pytest

from frontdesk import GatewayConfig, SessionSource, errors
from frontdesk.model import turns
from frontdesk.model.access import Access, Strangers
from frontdesk.model.chats import Quote
from frontdesk.model.listening import Answering, Listening
from frontdesk.model.messages import text_of
from frontdesk.model.sources import ChatType
from tests.flow.harness import House, Notebook, open_house


def in_group(house: House, user: str = "ann", chat: str = "room", **fields: Any) -> SessionSource:
    return house.source(user, chat, **({"chat_type": ChatType.GROUP} | fields))


async def kind_of(house: House, text: str = "hello", **fields: Any) -> turns.TurnKind:
    receipt = await house.say(text, **fields)
    return (await house.finished(receipt.turn_id)).kind


async def test_group_message_is_answered_when_it_is_addressed(house: House) -> None:
    source = in_group(house)
    assert await kind_of(house, source=source, addressed=True) is turns.TurnKind.MESSAGE
    ours = Quote(message_id="m1", is_ours=True)
    assert await kind_of(house, source=source, addressed=False, quote=ours) is turns.TurnKind.MESSAGE
    theirs = Quote(message_id="m2", text="hi")
    assert await kind_of(house, source=source, addressed=False, quote=theirs) is turns.TurnKind.OBSERVED
    assert await kind_of(house, "/status", source=source, addressed=False) is turns.TurnKind.OBSERVED
    assert await house.notebook.wait_for(2) == ["echo: hello", "echo: hello"]


async def test_private_message_is_always_meant_for_the_agent(house: House) -> None:
    assert await kind_of(house, addressed=False) is turns.TurnKind.MESSAGE


async def test_thread_is_our_own_once_we_have_answered_there(house: House) -> None:
    thread = in_group(house, chat_type=ChatType.THREAD, thread_id="7")
    topic = in_group(house, chat="forum", thread_id="7")
    for source in (thread, topic):
        assert await kind_of(house, source=source, addressed=False) is turns.TurnKind.OBSERVED
        assert await kind_of(house, source=source, addressed=True) is turns.TurnKind.MESSAGE
    other = in_group(house, "bob", chat_type=ChatType.THREAD, thread_id="7")
    assert await kind_of(house, source=other, addressed=False) is turns.TurnKind.MESSAGE
    assert await kind_of(house, source=topic, addressed=False) is turns.TurnKind.OBSERVED


@pytest.mark.parametrize(
    "listening",
    [
        Listening(answer=Answering.ALWAYS),
        Listening(answer_always_in=("room",)),
        Listening(answer_always_in=("room:7",)),
    ],
)
async def test_chat_that_is_set_so_is_always_answered(tmp_path: Path, listening: Listening) -> None:
    config = GatewayConfig(listening={"matrix": listening})
    async with open_house(f"sqlite:///{tmp_path}/state.db", config=config) as house:
        source = in_group(house, thread_id="7")
        assert await kind_of(house, source=source, addressed=False) is turns.TurnKind.MESSAGE
        elsewhere = in_group(house, chat="other")
        expected = turns.TurnKind.MESSAGE if not listening.answer_always_in else turns.TurnKind.OBSERVED
        assert await kind_of(house, source=elsewhere, addressed=False) is expected


async def test_two_bots_never_answer_each_other(tmp_path: Path) -> None:
    config = GatewayConfig(access={"matrix": Access(allow=("*",), allow_bots=True)})
    notebook = Notebook(authenticates=False)
    async with open_house(f"sqlite:///{tmp_path}/state.db", config=config, notebook=notebook) as house:
        ours = Quote(message_id="m1", is_ours=True)
        for source in (house.source(is_bot=True), in_group(house, is_bot=True)):
            kind = await kind_of(house, source=source, addressed=True, quote=ours)
            assert kind is turns.TurnKind.OBSERVED
        assert await kind_of(house) is turns.TurnKind.MESSAGE
        assert await notebook.wait_for(1) == ["echo: hello"]


async def test_stranger_who_did_not_speak_to_us_hears_nothing(tmp_path: Path) -> None:
    config = GatewayConfig(access={"matrix": Access(strangers=Strangers.ANSWER)})
    notebook = Notebook(authenticates=False)
    async with open_house(f"sqlite:///{tmp_path}/state.db", config=config, notebook=notebook) as house:
        with pytest.raises(errors.NotAllowed):
            await house.say("hello", source=in_group(house), addressed=False)
        with pytest.raises(errors.NotAllowed):
            await house.say("hello", source=house.source(is_bot=True))
        with pytest.raises(errors.NotAllowed):
            await house.say("hello")
        assert len(await notebook.wait_for(1, "notice")) == 1


async def test_what_is_overheard_is_bounded_and_never_keeps_a_message_out(house: House) -> None:
    source = in_group(house)
    hanging = await house.say("!hang", source=source, addressed=True)
    await house.until(hanging.turn_id, turns.TurnState.RUNNING)
    most = turns.MOST_OVERHEARD
    chatter = [
        await house.say(f"chatter {number}", source=source, addressed=False) for number in range(most * 3)
    ]
    wanted = await house.say("what now?", source=source, addressed=True)
    await house.ask("/stop", source=source)
    assert (await house.finished(wanted.turn_id)).state is turns.TurnState.DONE
    for each in chatter:
        assert (await house.finished(each.turn_id)).state is turns.TurnState.DONE
    rows = await house.transcript(chat="room", chat_type=ChatType.GROUP)
    heard = [text_of(row) for row in rows if row.get("observed")]
    assert heard == [f"chatter {number}" for number in range(most * 2, most * 3)]


async def test_transcript_keeps_the_newest_of_what_was_overheard(house: House) -> None:
    source = in_group(house)
    await house.ask("hello", source=source, addressed=True)
    most = turns.MOST_OVERHEARD
    for number in range(most + 5):
        receipt = await house.say(f"chatter {number}", source=source, addressed=False)
        await house.finished(receipt.turn_id)
    key = await house.key(chat="room", chat_type=ChatType.GROUP)
    rows = await house.transcript(chat="room", chat_type=ChatType.GROUP)
    assert [text_of(row) for row in rows] == [
        "hello",
        "echo: hello",
        *[f"chatter {number}" for number in range(5, most + 5)],
    ]
    assert await house.sessions.get_message_count(key) == len(rows)
