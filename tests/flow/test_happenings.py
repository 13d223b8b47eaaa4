"""What people do to messages: what still waits is changed itself, of the rest the agent finds a note."""

from datetime import datetime
from typing import Any

import pytest

from frontdesk import Platform, SessionSource, errors
from frontdesk.contracts.channels import Deleted, Edited, Happening, Pressed, Reacted, Receipt
from frontdesk.flow.intake import Intake
from frontdesk.model import turns
from frontdesk.model.chats import Button, Cursor, Quote, ReplyHandle
from frontdesk.model.deliveries import Delivery
from frontdesk.model.lanes import chat_lane
from frontdesk.model.messages import text_of
from tests.flow.harness import House, poll


def message(house: House, message_id: str, **fields: Any) -> SessionSource:
    return house.source(message_id=message_id, **fields)


async def keep_busy(house: House) -> Receipt:
    running = await house.say("!hang", source=message(house, "m0"))
    await house.until(running.turn_id, turns.TurnState.RUNNING)
    return running


async def stop(house: House) -> None:
    await house.ask("/stop")


async def answer_to(house: House, receipt: Receipt) -> str:
    await house.finished(receipt.turn_id)
    return [each.text for each in await house.store.deliveries.of_turn(receipt.turn_id)][-1]


async def contents(house: House, count: int) -> list[str]:
    return [text_of(row) for row in await house.rows(count)]


async def test_edit_of_a_message_that_waits_is_what_the_agent_gets(house: House) -> None:
    await keep_busy(house)
    waiting = await house.say("helo", source=message(house, "m1"))
    accept = house.gateway.desk.accept
    await accept(Edited(source=message(house, "m1"), text="hello", event_id="edit-1"))
    await accept(Edited(source=message(house, "m1"), text="hello there", event_id="edit-2"))
    again = await accept(Edited(source=message(house, "m1"), text="hello", event_id="edit-1"))
    assert again.repeated
    await stop(house)
    assert await answer_to(house, waiting) == "echo: hello there"
    assert "helo" not in await contents(house, 3)


async def test_edit_of_what_was_answered_becomes_a_note(house: House) -> None:
    await house.ask("two apples", source=message(house, "m1"))
    await house.gateway.desk.accept(Edited(source=message(house, "m1"), text="three apples", event_id="edit"))
    rows = await house.rows(3)
    assert rows[-1]["observed"] is True
    assert rows[-1]["content"] == '(changed "two apples" to "three apples")'
    assert house.notebook.replies == ["echo: two apples"]


async def test_nobody_changes_the_message_of_somebody_else(house: House) -> None:
    await keep_busy(house)
    waiting = await house.say("pay Ann", source=message(house, "m1"))
    forged = message(house, "m1", user="bob", chat="chat-ann")
    await house.gateway.desk.accept(Edited(source=forged, text="pay Bob", event_id="edit"))
    await stop(house)
    assert await answer_to(house, waiting) == "echo: pay Ann"


async def test_deleted_message_that_waits_is_never_answered(house: House) -> None:
    await keep_busy(house)
    waiting = await house.say("never mind", source=message(house, "m1"))
    await house.gateway.desk.accept(Deleted(source=message(house, "m1"), event_id="gone"))
    withdrawn = await house.finished(waiting.turn_id)
    assert (withdrawn.state, withdrawn.text) == (turns.TurnState.INTERRUPTED, "(deleted)")
    await stop(house)
    assert await house.ask("next") == "echo: next"
    assert "never mind" not in " ".join(await contents(house, 3))


async def test_deletion_of_what_was_answered_becomes_a_note(house: House) -> None:
    await house.ask("my password is x", source=message(house, "m1"))
    await house.gateway.desk.accept(Deleted(source=message(house, "m1"), event_id="gone"))
    assert (await contents(house, 3))[-1] == '(deleted "my password is x")'


async def test_changes_of_messages_that_nobody_knows_change_nothing(house: House) -> None:
    accept = house.gateway.desk.accept
    for happening in (
        Edited(source=message(house, "m9"), text="hello", event_id="a"),
        Deleted(source=message(house, "m9"), event_id="b"),
        Reacted(source=message(house, "m9"), emoji="+", event_id="c"),
    ):
        receipt = await accept(happening)
        assert receipt.turn_id == ""
    assert await house.transcript() == []


async def test_reactions_are_notes_in_the_conversation_of_the_message(house: House) -> None:
    receipt = await house.say("hello", source=message(house, "m1"))
    await house.finished(receipt.turn_id)
    await house.notebook.wait_for(1)

    async def answer() -> Delivery | None:
        (delivery,) = await house.store.deliveries.of_turn(receipt.turn_id)
        return delivery if delivery.platform_message_id else None

    answered = await poll(answer)
    accept = house.gateway.desk.accept
    await accept(Reacted(source=message(house, "m1"), emoji="\N{HEAVY BLACK HEART}", event_id="r1"))
    on_answer = message(house, str(answered.platform_message_id))
    await accept(Reacted(source=on_answer, emoji="\N{THUMBS UP SIGN}", event_id="r2"))
    await accept(Reacted(source=on_answer, emoji="\N{THUMBS UP SIGN}", removed=True, event_id="r3"))
    assert (await contents(house, 5))[2:] == [
        '(reacted with "\N{HEAVY BLACK HEART}" to "hello")',
        '(reacted with "\N{THUMBS UP SIGN}" to your answer "echo: hello")',
        '(took back "\N{THUMBS UP SIGN}" from your answer "echo: hello")',
    ]


async def test_reaction_with_the_sign_of_a_button_presses_it(house: House) -> None:
    source = house.source()
    card = Delivery(
        id="card",
        lane=chat_lane(source),
        to=source,
        text="Allow?",
        session_key=await house.key(),
        buttons=(Button(label="Yes", token="token-yes", sign="\N{WHITE HEAVY CHECK MARK}"),),
        created_at=house.gateway.parts.clock.now(),
    )
    await house.store.deliveries.add([card])

    async def sent() -> str | None:
        found = await house.store.deliveries.find("card")
        return found.platform_message_id if found else None

    on_card = message(house, await poll(sent))
    for emoji, event_id in (("\N{WHITE HEAVY CHECK MARK}", "r1"), ("\N{FIRE}", "r2")):
        await house.gateway.desk.accept(Reacted(source=on_card, emoji=emoji, event_id=event_id))
    press = await house.gateway.desk.accept(
        Reacted(source=on_card, emoji="\N{WHITE HEAVY CHECK MARK}", event_id="r1")
    )
    pressed = await house.store.turns.find(press.turn_id)
    assert pressed
    assert (pressed.kind, pressed.token, pressed.source.user_id) == (turns.TurnKind.PRESS, "token-yes", "ann")


async def test_press_is_stored_once_and_waits_for_no_turn(house: House) -> None:
    await keep_busy(house)
    pressed = Pressed(source=message(house, "card"), token="token", event_id="press")
    receipt = await house.gateway.desk.accept(pressed)
    assert (await house.gateway.desk.accept(pressed)).repeated
    turn = await house.finished(receipt.turn_id)
    assert (turn.kind, turn.token) == (turns.TurnKind.PRESS, "token")
    await stop(house)


@pytest.mark.parametrize("token", ["", "x" * 33, "tök", "a\nb"])
async def test_press_with_what_is_no_token_of_ours_is_refused(house: House, token: str) -> None:
    with pytest.raises(errors.InvalidMessage):
        await house.gateway.desk.accept(Pressed(source=house.source(), token=token))


async def test_quote_stands_before_the_message_and_handle_comes_back_with_its_answer(house: House) -> None:
    handle = ReplyHandle(value="reply-1")
    quote = Quote(message_id="m7", text='see "this"\nline', is_ours=True)
    first = await house.say("!sleep 0.2", handle=handle, quote=quote)
    await house.say("later", handle=ReplyHandle(value="reply-2"))
    await house.finished(first.turn_id)
    await house.notebook.wait_for(2)
    assert [
        each.handle and each.handle.value for each in house.notebook.sent if each.turn_id == first.turn_id
    ] == ["reply-1"]
    assert (await contents(house, 1))[0] == '(in answer to your "see \\"this\\"\\nline")\n!sleep 0.2'


@pytest.mark.parametrize(
    "fields",
    [
        {"quote": Quote(message_id="m" * 801)},
        {"quote": Quote(message_id="m", text="half \ud800")},
        {"handle": ReplyHandle(value="h" * 10_001)},
        {"handle": ReplyHandle(value="h", expires_at=datetime(2026, 1, 1))},  # noqa: DTZ001
        {"album": "\udfff"},
        {"sent_at": datetime(2026, 1, 1)},  # noqa: DTZ001
        {"source": SessionSource(platform=Platform.MATRIX, chat_id="c", user_id="u", message_id="m" * 801)},
    ],
)
async def test_what_could_not_be_kept_is_refused_and_changes_nothing(
    house: House, fields: dict[str, Any]
) -> None:
    with pytest.raises(errors.InvalidMessage):
        await house.say("hello", **fields)
    assert await house.transcript() == []


async def test_long_quote_is_cut_and_the_message_is_answered(house: House) -> None:
    long = Quote(message_id="m", text="x" * 100_000)
    assert await house.ask("hello", quote=long)
    assert len((await contents(house, 1))[0]) < 1_000


async def test_edit_to_nothing_leaves_the_message_as_it_was(house: House) -> None:
    await keep_busy(house)
    waiting = await house.say("hello", source=message(house, "m1"))
    await house.gateway.desk.accept(Edited(source=message(house, "m1"), text=" ", event_id="edit"))
    await stop(house)
    assert await answer_to(house, waiting) == "echo: hello"


async def test_what_bots_do_to_messages_is_passed_over_and_the_cursor_moves(house: House) -> None:
    await house.ask("hello", source=message(house, "m1"))
    bot = message(house, "m1", user="bot", chat="chat-ann", is_bot=True)
    desk = Intake(house.gateway.parts, house.notebook)
    did: list[Happening] = [
        Edited(source=bot, text="changed", event_id="a"),
        Reacted(source=bot, emoji="+", event_id="b"),
        Pressed(source=bot, token="token", event_id="c"),
    ]
    for number, happening in enumerate(did):
        receipt = await desk.accept(happening, cursor=Cursor(value=str(number)))
        assert receipt.turn_id == ""
        assert await desk.cursors() == {"": str(number)}
    assert len(await house.transcript()) == 2


async def test_cursor_moves_with_every_happening(house: House) -> None:
    await house.ask("hello", source=message(house, "m1"))
    desk = Intake(house.gateway.parts, house.notebook)
    did: list[Happening] = [
        Edited(source=message(house, "m1"), text="changed", event_id="a"),
        Edited(source=message(house, "m1"), text="changed", event_id="a"),
        Deleted(source=message(house, "m9"), event_id="b"),
        Reacted(source=message(house, "m1"), emoji="+", event_id="c"),
        Pressed(source=message(house, "m1"), token="token", event_id="d"),
    ]
    for number, happening in enumerate(did):
        await desk.accept(happening, cursor=Cursor(value=str(number)))
        assert await desk.cursors() == {"": str(number)}
    await desk.move_cursor(Cursor(value="last", chat="room"))
    assert await desk.cursors() == {"": "4", "room": "last"}
