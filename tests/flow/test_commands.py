"""Commands through a whole gateway: what each does, also while a turn hangs, and for its caller alone."""

import asyncio
import re
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from frontdesk import (
    CheckpointManager,
    EndReason,
    GatewayConfig,
    ResetMode,
    SessionResetPolicy,
    SessionSource,
    errors,
)
from frontdesk.agents import command, scripted
from frontdesk.contracts.hooks import LoadTranscript, NoHooks
from frontdesk.flow.commands import CommandRequest, Rerun, registry
from frontdesk.flow.commands import transcript as transcript_commands
from frontdesk.flow.commands.views import MAX_ARGUMENT_CHARACTERS
from frontdesk.model import lanes
from frontdesk.model.access import Access, Role, Strangers
from frontdesk.model.audit import AuditKind
from frontdesk.model.running import Running
from frontdesk.model.sessions import Session, SessionEntry
from frontdesk.model.turns import Ending, Turn, TurnKind, TurnState
from tests.flow.harness import PATIENCE_SECONDS, House, Notebook, open_house

LASTING = SessionResetPolicy(mode=ResetMode.NONE, max_messages=0)
PEOPLE = GatewayConfig(
    default_reset_policy=LASTING, access={"matrix": Access(administrators=("root",), allow=("*",))}
)
ID = re.compile(r"\d{8}_\d{6}_[0-9a-f]{8}")
SECRET = "xylophone"
ANSWERED = [command.name for command in registry.COMMANDS if not command.takes_in]
"""What the gateway answers itself."""


@pytest.fixture
async def staffed(tmp_path: Path) -> AsyncIterator[House]:
    """A gateway with an administrator, root, who has checkpoints of a working directory."""
    work = tmp_path / "work"
    work.mkdir()
    running = Running(drain_seconds=1.0, checkpoints=True, working_dir=str(work))
    async with open_house(
        f"sqlite:///{tmp_path}/state.db",
        config=PEOPLE,
        running=running,
        notebook=Notebook("matrix", reliable_sender_ids=True),
        snapshots=CheckpointManager(root=tmp_path / "checkpoints"),
    ) as house:
        yield house


async def current(house: House, user: str = "ann", **fields: Any) -> Session:
    session = await house.store.sessions.current(await house.key(user, **fields))
    assert session is not None
    return session


async def hang(house: House, text: str = "!say half; !hang", user: str = "ann") -> str:
    """A turn that runs and does not end; its id."""
    before = len(await house.transcript(user))
    receipt = await house.say(text, user=user)
    async with asyncio.timeout(PATIENCE_SECONDS):
        while len(await house.transcript(user)) == before:  # noqa: ASYNC110 - the store has no event for it
            await asyncio.sleep(0.01)
    return receipt.turn_id


async def texts(house: House, user: str = "ann") -> list[str]:
    return [row["content"] for row in await house.transcript(user)]


def room(house: House, user: str) -> SessionSource:
    """A message in a thread whose people share a conversation."""
    return house.source(user, chat="room", chat_type="group", thread_id="7")


class TestNew:
    async def test_starts_a_conversation_and_tells_the_way_back(self, house: House) -> None:
        await house.ask("hello")
        before = await current(house)
        said = await house.ask("/new")
        after = await current(house)
        assert after.id in said
        assert f"/resume {before.id}" in said
        assert (after.entry.is_fresh_reset, after.entry.was_auto_reset) == (True, False)
        assert await house.transcript() == []

    async def test_works_as_the_first_thing_that_is_said(self, house: House) -> None:
        assert (await current_id(house, await house.ask("/new"))) == (await current(house)).id

    async def test_older_session_does_not_come_back_after_it(self, house: House) -> None:
        await house.ask("hello")
        old = await current(house)
        await house.sessions.close_session(old.id)
        await house.ask("/reset")
        await house.ask("again")
        assert (await current(house)).id != old.id

    async def test_stops_a_hanging_turn_and_keeps_its_text(self, house: House) -> None:
        hanging = await hang(house, "!call look; !say half; !hang")
        old = await current(house)
        said = await house.ask("/new")
        assert (await house.finished(hanging)).state is TurnState.INTERRUPTED
        assert f"/resume {old.id}" in said
        rows = await house.sessions.load_transcript(old.id)
        assert rows[-1]["content"] == "half"
        assert any(row["role"] == "tool" and "interrupted" in row["content"] for row in rows)
        assert await house.transcript() == []

    async def test_hooks_hear_of_the_end(self, tmp_path: Path) -> None:
        heard: list[tuple[str, str, EndReason]] = []

        class Listening(NoHooks):
            async def on_session_end(self, entry: SessionEntry, reason: EndReason) -> None:
                heard.append(("end", entry.session_id, reason))

            async def on_session_finalize(
                self, entry: SessionEntry, reason: EndReason, load_transcript: LoadTranscript
            ) -> None:
                assert len(await load_transcript()) == 2
                heard.append(("finalize", entry.session_id, reason))

        async with open_house(f"sqlite:///{tmp_path}/state.db", hooks=Listening()) as house:
            await house.ask("hello")
            old = (await current(house)).id
            await house.ask("/new")
        assert heard == [("finalize", old, EndReason.NEW), ("end", old, EndReason.NEW)]


class Clinging(scripted.Driver):
    """An agent that cannot free what it holds for a session: it hangs, or it raises."""

    def __init__(self, *, hangs: bool) -> None:
        super().__init__(scripted.Options())
        self._hangs = hangs

    async def release(self, session_id: str) -> None:
        if self._hangs:
            await asyncio.Event().wait()
        raise RuntimeError("it is still needed")


@pytest.mark.parametrize(
    ("command", "answer"),
    [
        ("/new", "new conversation"),
        ("/resume Alpha", "You are back in"),
        ("/branch", "You go on in a copy"),
        ("/forget yes", "Forgotten."),
    ],
)
async def test_agent_that_cannot_free_a_session_does_not_keep_it_from_ending(
    store_url: str, command: str, answer: str
) -> None:
    async with open_house(store_url, agent=Clinging(hangs=False)) as house:
        await two_titled(house)
        assert answer in await house.ask(command)
        assert await house.ask("hello") == "echo: hello"


async def test_agent_that_hangs_when_it_is_to_free_a_session_does_not_block_the_conversation(
    tmp_path: Path,
) -> None:
    async with open_house(f"sqlite:///{tmp_path}/state.db", agent=Clinging(hangs=True)) as house:
        await house.ask("hello")
        assert "new conversation" in await house.ask("/new")
        assert await house.ask("hello again") == "echo: hello again"


async def current_id(house: House, said: str) -> str:
    found = ID.search(said)
    assert found
    return found[0]


async def two_titled(house: House, user: str = "ann") -> tuple[str, str]:
    """Two named conversations, Alpha and then Beta, which is the current one."""
    await house.ask("about alpha", user=user)
    await house.ask("/title Alpha", user=user)
    alpha = (await current(house, user)).id
    await house.ask("/new", user=user)
    await house.ask("about beta", user=user)
    await house.ask("/title Beta", user=user)
    return alpha, (await current(house, user)).id


class TestResume:
    async def test_without_argument_lists_titled_conversations(self, house: House) -> None:
        await two_titled(house)
        await house.ask("/new")
        await house.ask("untitled")
        lines = (await house.ask("/resume")).splitlines()
        assert [line.split(",")[0] for line in lines[1:3]] == ['1. "Beta"', '2. "Alpha"']
        assert len(lines) == 4

    async def test_list_says_where_one_is(self, house: House) -> None:
        await two_titled(house)
        assert "(you are here)" in (await house.ask("/resume")).splitlines()[1]

    async def test_without_titles_says_how_to_give_one(self, house: House) -> None:
        await house.ask("hello")
        assert "/title" in await house.ask("/resume")

    @pytest.mark.parametrize("title", ["My Project", 'The "big" one', "back\\slash"])
    async def test_knows_the_quotes_that_lists_show(self, house: House, title: str) -> None:
        await house.ask("hello")
        await house.ask(f"/title {title}")
        mine = (await current(house)).id
        await house.ask("/new")
        shown = (await house.ask("/resume")).splitlines()[1].removeprefix("1. ").rpartition(", ")[0]
        assert "back" in await house.ask(f"/resume {shown}")
        assert (await current(house)).id == mine

    @pytest.mark.parametrize(
        "wanted", ["2", "Alpha", "  aLPHA ", "{id}", '"Alpha"', "“alpha”", "Al\u200bpha"]
    )
    async def test_goes_to_a_number_title_or_id(self, house: House, wanted: str) -> None:
        alpha, _ = await two_titled(house)
        said = await house.ask("/resume " + wanted.format(id=alpha))
        assert '"Alpha"' in said
        assert (await current(house)).id == alpha
        assert (await texts(house))[0] == "about alpha"

    async def test_follows_the_lineage_to_the_newest(self, house: House) -> None:
        await house.ask("hello")
        await house.ask("/title Long")
        first = (await current(house)).id
        for _ in range(2):
            await house.sessions.compress_session(await house.key(), [{"role": "user", "content": "short"}])
        tip = (await current(house)).id
        await house.ask("/new")
        assert '1. "Long"' in await house.ask("/resume")
        for wanted in ("Long", "1", first):
            await house.ask(f"/resume {wanted}")
            assert (await current(house)).id == tip
            await house.ask("/new")

    async def test_says_so_when_already_there(self, house: House) -> None:
        _, beta = await two_titled(house)
        for wanted in ("Beta", "1", beta):
            assert "already" in await house.ask(f"/resume {wanted}")
        assert (await current(house)).id == beta

    @pytest.mark.parametrize(
        "wanted", ["Gamma", "3", "0", "../etc", "20260101_000000_00000000", "x" * 200, '"\u202e\n{id}']
    )
    async def test_says_so_when_the_name_is_unknown(self, house: House, wanted: str) -> None:
        _, beta = await two_titled(house)
        said = await house.ask(f"/resume {wanted}")
        assert said.startswith("You have no conversation")
        assert len(said) < 300
        assert (await current(house)).id == beta

    async def test_stops_a_hanging_turn_and_keeps_its_text(self, house: House) -> None:
        alpha, beta = await two_titled(house)
        hanging = await hang(house)
        await house.ask("/resume Alpha")
        assert (await house.finished(hanging)).state is TurnState.INTERRUPTED
        assert (await current(house)).id == alpha
        assert (await house.sessions.load_transcript(beta))[-1]["content"] == "half"

    async def test_takes_up_a_conversation_that_was_set_aside(self, house: House) -> None:
        await house.ask("hello")
        old = await current(house)
        await house.sessions.suspend_session(await house.key())
        assert "back" in await house.ask(f"/resume {old.id}")
        await house.ask("again")
        assert (await current(house)).id == old.id

    async def test_counts_everything_that_was_said_however_often_one_comes_back(self, house: House) -> None:
        alpha, _ = await two_titled(house)
        for _ in range(2):
            assert "(2 messages)" in await house.ask("/resume Alpha")
            assert "Messages: 2; 0 of 200 since you came back" in await house.ask("/status")
            assert f'{alpha}, "Alpha", 2 messages' in await house.ask("/sessions")
            assert f"to get back to it: /resume {alpha}" in await house.ask("/new")
        await house.ask("/resume Alpha")
        await house.ask("more")
        assert "Messages: 4; 2 of 200 since you came back" in await house.ask("/status")
        await house.ask("/undo 2")
        assert "Messages: 0" in await house.ask("/status")

    async def test_works_in_a_chat_without_a_conversation(self, house: House) -> None:
        alpha, _ = await two_titled(house)
        other = house.source("ann", chat="another")
        assert "back" in await house.ask("/resume Alpha", source=other)
        assert (await current(house, chat="another")).id == alpha

    async def test_leaves_alone_what_is_at_work_in_another_chat(self, house: House) -> None:
        _, beta = await two_titled(house)
        await hang(house)
        said = await house.ask("/resume Beta", source=house.source("ann", chat="another"))
        assert "/stop" in said
        assert (await current(house)).id == beta

    async def test_private_conversation_stays_out_of_a_shared_chat(self, house: House) -> None:
        alpha, _ = await two_titled(house)
        await house.ask("hello", source=room(house, "ann"))
        for wanted in ("Alpha", alpha, "1"):
            said = await house.ask(f"/resume {wanted}", source=room(house, "ann"))
            assert "direct chat" in said
        assert "Alpha" not in await house.ask("/resume", source=room(house, "ann"))
        shared = await current(house, "ann", chat="room", chat_type="group", thread_id="7")
        assert shared.id != alpha

    async def test_shared_conversation_is_resumed_from_its_chat(self, house: House) -> None:
        await house.ask("hello", source=room(house, "ann"))
        await house.ask("/title Ours", source=room(house, "ann"))
        await house.ask("/new", source=room(house, "bob"))
        assert "back" in await house.ask("/resume Ours", source=room(house, "bob"))
        assert "no conversation" in await house.ask("/resume Ours", user="ann")

    async def test_forgotten_conversation_cannot_be_resumed(self, house: House) -> None:
        await house.ask("hello")
        old = (await current(house)).id
        await house.ask("/forget yes")
        await house.ask("next")
        assert "forgotten" in await house.ask(f"/resume {old}")
        assert (await current(house)).id != old


class TestSessions:
    async def test_lists_own_conversations_with_their_ids(self, house: House) -> None:
        alpha, beta = await two_titled(house)
        lines = (await house.ask("/sessions")).splitlines()
        assert lines[1].startswith(f'{beta}, "Beta", 2 messages')
        assert lines[1].endswith("(you are here)")
        assert lines[2].startswith(f'{alpha}, "Alpha", 2 messages')

    async def test_says_so_when_there_are_none(self, house: House) -> None:
        assert "no conversations" in await house.ask("/sessions")

    async def test_private_ones_are_not_shown_in_a_shared_chat(self, house: House) -> None:
        await two_titled(house)
        await house.ask("hello", source=room(house, "ann"))
        said = await house.ask("/sessions", source=room(house, "ann"))
        assert "Alpha" not in said
        assert len(ID.findall(said)) == 1

    async def test_administrator_may_ask_for_everybodys_in_private(self, staffed: House) -> None:
        await two_titled(staffed, "ann")
        assert "Alpha" in await staffed.ask("/sessions --all", user="root")
        assert "Alpha" not in await staffed.ask("/sessions", user="root")
        assert "may not" in await staffed.ask("/sessions --all", user="bob")
        said = await staffed.ask("/sessions --all", source=room(staffed, "root"))
        assert "private chats alone" in said


class TestTitle:
    async def test_names_and_shows(self, house: House) -> None:
        await house.ask("hello")
        assert "no title" in await house.ask("/title")
        assert '"My trip"' in await house.ask("/title  My \n trip")
        assert '"My trip"' in await house.ask("/title")
        assert (await current(house)).title == "My trip"

    async def test_is_taken_once(self, house: House) -> None:
        await two_titled(house)
        assert "already called" in await house.ask("/title alpha")
        assert (await current(house)).title == "Beta"

    async def test_two_people_may_use_the_same(self, house: House) -> None:
        for user in ("ann", "bob"):
            await house.ask("hello", user=user)
            assert "now" in await house.ask("/title Plans", user=user)

    @pytest.mark.parametrize("title", ["x" * 101, "x" * 10_000, "bell \x07"])
    async def test_unusable_title_is_refused_in_few_words(self, house: House, title: str) -> None:
        await house.ask("hello")
        said = await house.ask(f"/title {title}")
        assert "refused" in said or "cannot be used" in said
        assert len(said) < MAX_ARGUMENT_CHARACTERS

    async def test_needs_a_conversation(self, house: House) -> None:
        assert "no conversation" in await house.ask("/title Plans")


class TestRetry:
    async def test_asks_again_and_keeps_the_old_answer_for_the_record(self, house: House) -> None:
        await house.ask("first")
        await house.ask("!tool look; !say old")
        session = (await current(house)).id
        assert await house.ask("/retry") == "old"
        rows = await house.transcript()
        assert [row["content"] for row in rows if row["role"] == "user"] == ["first", "!tool look; !say old"]
        (revision,) = await house.sessions.list_revisions(session)
        gone = await house.sessions.load_transcript(session, revision=revision.number)
        assert [row["role"] for row in gone] == ["user", "assistant", "tool", "assistant"]

    async def test_keeps_the_parts_of_a_message(self, house: House) -> None:
        content = [{"type": "text", "text": "look"}, {"type": "image_url", "image_url": {"url": "data:x"}}]
        await house.ask("look", content=content)
        await house.ask("/retry")
        assert (await house.transcript())[0]["content"] == content

    async def test_names_the_sender_once_in_a_shared_chat(self, house: House) -> None:
        await house.ask("[x] hello", source=room(house, "ann"))
        await house.ask("/retry", source=room(house, "bob"))
        rows = await house.transcript("ann", chat="room", chat_type="group", thread_id="7")
        assert rows[0]["content"] == "[Bob] [x] hello"

    async def test_takes_one_turn_back_however_often_it_is_begun(self, house: House) -> None:
        await house.ask("first")
        await house.ask("!fail retryable 1; !say second")
        assert (await texts(house))[-1] == "second"
        receipt = await house.say("/retry")
        assert (await house.finished(receipt.turn_id)).attempts == 2
        users = [row["content"] for row in await house.transcript() if row["role"] == "user"]
        assert users == ["first", "!fail retryable 1; !say second"]

    async def test_says_so_when_there_is_nothing(self, house: House) -> None:
        await house.ask("/new")
        assert "nothing to retry" in await house.ask("/retry")

    async def test_set_aside_conversation_is_not_touched(self, house: House) -> None:
        await house.ask("hello")
        await house.sessions.suspend_session(await house.key())
        assert "set aside" in await house.ask("/retry")
        assert len(await house.transcript()) == 2


class TestUndo:
    async def test_takes_back_and_redo_brings_back(self, house: House) -> None:
        for word in ("one", "two", "three"):
            await house.ask(word)
        said = await house.ask("/undo 2")
        assert "2 turns (4 messages)" in said
        assert '"two"' in said
        assert await texts(house) == ["one", "echo: one"]
        assert "4 messages" in await house.ask("/redo")
        assert len(await house.transcript()) == 6

    async def test_one_turn_without_a_number(self, house: House) -> None:
        await house.ask("one")
        assert "1 turn (2 messages)" in await house.ask("/undo")
        assert "nothing to undo" in await house.ask("/undo")

    @pytest.mark.parametrize("number", ["0", "-1", "two", "1.5", "9" * 5_000, "9" * 500, "1001"])
    async def test_other_numbers_are_refused(self, house: House, number: str) -> None:
        await house.ask("one")
        said = await house.ask(f"/undo {number}")
        assert "cannot be used" in said
        assert len(said) < 300
        assert len(await house.transcript()) == 2

    async def test_nothing_to_redo_once_something_was_said(self, house: House) -> None:
        await house.ask("one")
        assert "nothing to bring back" in await house.ask("/redo")
        await house.ask("/undo")
        await house.ask("two")
        assert "nothing to bring back" in await house.ask("/redo")


class TestBranch:
    async def test_goes_on_in_a_copy(self, house: House) -> None:
        await house.ask("hello")
        original = (await current(house)).id
        said = await house.ask("/branch")
        copy = (await current(house)).id
        assert copy in said
        assert f"/resume {original}" in said
        await house.ask("more")
        assert len(await house.transcript()) == 4
        assert len(await house.sessions.load_transcript(original)) == 2

    async def test_stops_a_hanging_turn_and_copies_its_text(self, house: House) -> None:
        hanging = await hang(house)
        original = (await current(house)).id
        await house.ask("/branch")
        assert (await house.finished(hanging)).state is TurnState.INTERRUPTED
        assert (await current(house)).id != original
        assert (await texts(house))[-1] == "half"

    async def test_needs_a_conversation(self, house: House) -> None:
        assert "no conversation" in await house.ask("/branch")


class TestCompress:
    async def test_puts_a_hand_over_before_the_newest_messages(self, house: House) -> None:
        for number in range(12):
            await house.ask(f"number {number}")
        long = (await current(house)).id
        said = await house.ask("/compress")
        assert "hand-over of 12 messages" in said
        assert "newest 12 messages" in said
        rows = await house.transcript()
        assert rows[0]["role"] == "session_meta"
        assert "number 0" in rows[0]["content"]
        assert rows[1]["content"] == "number 6"
        assert len(rows) == 13
        assert len(await house.sessions.load_transcript(long)) == 24
        assert "number 3" in await house.ask('/search "number 3"')

    async def test_title_goes_along(self, house: House) -> None:
        for number in range(12):
            await house.ask(f"number {number}")
        await house.ask("/title Long")
        await house.ask("/compress")
        assert (await current(house)).title == "Long"

    async def test_keeps_whole_turns(self, house: House) -> None:
        await house.ask("first")
        await house.ask("; ".join(["!tool look"] * 8))
        await house.ask("last")
        await house.ask("/compress")
        roles = [row["role"] for row in await house.transcript()]
        assert roles == ["session_meta", "user", "assistant"]

    async def test_short_conversation_stays_as_it_is(self, house: House) -> None:
        await house.ask("hello")
        before = (await current(house)).id
        assert "nothing to compress" in await house.ask("/compress")
        assert (await current(house)).id == before


TELLS_MODEL = """\
import json, sys
model = json.loads(sys.stdin.readline())["model"]
print(json.dumps({"type": "text", "text": json.dumps(model)}))
print(json.dumps({"type": "done"}), flush=True)
"""


class TestModel:
    async def test_chooses_shows_and_goes_back(self, house: House) -> None:
        assert "default model" in await house.ask("/model")
        assert "small-1" in await house.ask("/model vendor/small-1:free")
        assert "vendor/small-1:free" in await house.ask("!show model")
        assert '"vendor/small-1:free"' in await house.ask("/model")
        assert "default" in await house.ask("/model DEFAULT")
        assert await house.ask("!show model") == "model: {}"

    async def test_agent_that_takes_none_is_not_said_to(self, store_url: str) -> None:
        agent = command.Driver(command.Options(command=(sys.executable, "-c", "pass")))
        async with open_house(store_url, agent=agent) as house:
            assert "cannot be given another model" in await house.ask("/model large")
            assert await house.sessions.get_session(await house.key()) is None
            assert "no other can be chosen" in await house.ask("/model")

    async def test_program_that_says_so_is_told_the_model(self, store_url: str) -> None:
        program = (sys.executable, "-c", TELLS_MODEL)
        agent = command.Driver(command.Options(command=program, models=True))
        async with open_house(store_url, agent=agent) as house:
            assert await house.ask("hello") == "null"
            assert "from now on" in await house.ask("/model large")
            assert await house.ask("hello") == '{"model": "large"}'

    @pytest.mark.parametrize("name", ["two words", "x" * 101, "a\nb", "key=secret", "-x"])
    async def test_other_names_are_refused(self, house: House, name: str) -> None:
        await house.ask("hello")
        assert "cannot be used" in await house.ask(f"/model {name}")
        assert (await current(house)).entry.model_override is None

    async def test_dies_with_its_session(self, house: House) -> None:
        await house.ask("/model small")
        await house.ask("/new")
        assert (await current(house)).entry.model_override is None


class TestStop:
    async def test_ends_a_hanging_turn_and_keeps_its_text(self, house: House) -> None:
        hanging = await hang(house, "!call look; !say half; !hang")
        assert await house.ask("/stop") == "Stopped."
        assert (await house.finished(hanging)).state is TurnState.INTERRUPTED
        assert (await texts(house))[-1] == "half"
        assert await house.ask("hello") == "echo: hello"

    async def test_says_how_many_messages_wait(self, house: House) -> None:
        await hang(house, "!hang")
        waiting = [await house.say("!hang") for _ in range(2)]
        said = await house.ask("/stop")
        assert said == "Stopped. 2 messages wait and will be answered next.", (
            "also the one that has begun by now"
        )
        await house.until(waiting[0].turn_id, TurnState.RUNNING)
        assert await house.ask("/stop") == "Stopped. 1 message waits and will be answered next."
        await house.until(waiting[1].turn_id, TurnState.RUNNING)

    async def test_says_so_when_nothing_runs(self, house: House) -> None:
        assert await house.ask("/stop") == "Nothing is running."

    async def test_leaves_the_turns_of_others_alone(self, house: House) -> None:
        hanging = await hang(house, user="ann")
        assert await house.ask("/stop", user="bob") == "Nothing is running."
        turn = await house.store.turns.find(hanging)
        assert turn is not None
        assert (turn.state, turn.stop_requested) == (TurnState.RUNNING, False)

    async def test_breaks_a_resume_loop(self, house: House) -> None:
        await house.ask("hello")
        old = (await current(house)).id
        await house.sessions.mark_resume_pending(await house.key())
        said = await house.ask("/stop")
        assert f"/resume {old}" in said
        assert (await current(house)).entry.suspended
        await house.ask("next")
        assert (await current(house)).id != old

    async def test_takes_the_turn_from_a_holder_that_does_not_end_it(self, tmp_path: Path) -> None:
        running = Running(drain_seconds=0.1, stop_seconds=0.0, turns_at_once=1)
        async with open_house(f"sqlite:///{tmp_path}/state.db", running=running) as house:
            await hang(house, user="bob")  # so that only another node has room
            waiting = await house.say("hello", user="ann")
            now, turns = house.gateway.parts.clock.now(), house.store.turns
            (claim,) = await turns.claim(house.gateway.node or 0, lanes.LaneKind.TURN, 1, now, lambda _: ())
            assert claim.turn.id == waiting.turn_id
            assert "took the turn away" in await house.ask("/stop", user="ann")
            assert (await house.finished(waiting.turn_id)).state is TurnState.INTERRUPTED
            with pytest.raises(errors.LeaseLost):
                await turns.finish(claim, Ending(state=TurnState.DONE), now)


class TestStatus:
    async def test_shows_where_the_conversation_stands(self, house: House) -> None:
        await house.ask("!tokens 1200 34 0.25; ok")
        await house.ask("/title Plans")
        said = await house.ask("/status")
        assert f'{(await current(house)).id}, "Plans"' in said
        assert "Messages: 2 of 200" in said
        assert "1,200 in, 34 out" in said
        assert "$0.25" in said
        assert "nothing is running" in said
        assert "0 messages" in said

    async def test_works_while_a_turn_hangs_and_counts_the_queue(self, house: House) -> None:
        await hang(house)
        for _ in range(2):
            await house.say("later")
        said = await house.ask("/status")
        assert "Now: working" in said
        assert "Waiting: 2 messages" in said

    async def test_changes_nothing_and_tells_what_is_due(self, store_url: str) -> None:
        config = GatewayConfig(default_reset_policy=SessionResetPolicy(mode=ResetMode.NONE, max_messages=3))
        async with open_house(store_url, config=config) as house:
            await house.ask("hello")
            entry = (await current(house)).entry
            await house.sessions.append_to_transcript(
                entry.session_id, {"role": "user", "content": "x"}, turn_id="t", turn_position=0
            )
            before = await current(house)
            said = await house.ask("/status")
            assert "starts a new conversation (message limit)" in said
            assert await current(house) == before

    async def test_says_what_was_set_aside_or_interrupted(self, house: House) -> None:
        await house.ask("hello")
        await house.sessions.mark_resume_pending(await house.key())
        assert "will be continued" in await house.ask("/status")
        await house.sessions.suspend_session(await house.key())
        assert "set aside" in await house.ask("/status")

    async def test_without_a_conversation_makes_none(self, house: House) -> None:
        assert "no conversation" in await house.ask("/status")
        assert await house.store.sessions.current(await house.key()) is None


async def test_usage_shows_tokens_cost_and_limits(house: House) -> None:
    await house.ask("!tokens 10 5 0.5; ok")
    said = await house.ask("/usage")
    assert "10 in, 5 out" in said
    assert "$0.50" in said
    assert "2 of at most 200 messages" in said


class TestSearch:
    async def test_finds_what_was_said(self, house: House) -> None:
        await house.ask(f"the {SECRET} is blue")
        old = (await current(house)).id
        await house.ask("/new")
        said = await house.ask(f"/search {SECRET} blue")
        assert said.startswith(old)
        assert f"«{SECRET}»" in said

    async def test_says_so_when_nothing_is_found_or_asked(self, house: House) -> None:
        assert "nothing" in await house.ask("/search unheard-of")
        assert "/search WORDS" in await house.ask("/search")

    async def test_private_text_is_not_shown_in_a_shared_chat(self, house: House) -> None:
        await house.ask(f"the {SECRET} is blue")
        assert "blue" not in await house.ask(f"/search {SECRET}", source=room(house, "ann"))

    async def test_forgotten_text_is_not_shown(self, house: House) -> None:
        await house.ask(f"the {SECRET} is blue")
        await house.ask("/forget yes")
        assert "blue" not in await house.ask(f"/search {SECRET}")

    async def test_administrator_may_search_everybodys(self, staffed: House) -> None:
        await staffed.ask(f"the {SECRET} is blue", user="ann")
        assert "blue" in await staffed.ask(f"/search --all {SECRET}", user="root")
        assert "blue" not in await staffed.ask(f"/search {SECRET}", user="root")
        assert "may not" in await staffed.ask(f"/search --all {SECRET}", user="bob")


class TestExport:
    async def test_is_markdown_of_the_whole_conversation(self, house: House) -> None:
        await house.ask("!tool look; !say seen")
        await house.ask("/title Plans")
        said = await house.ask("/export")
        assert said.startswith("# Plans\n\nSession ")
        assert "**user:** !tool look; !say seen" in said
        assert "(calls look)" in said
        assert said.endswith("**assistant:** seen")

    async def test_long_one_is_cut_with_a_note(self, house: House) -> None:
        for letter in "abcd":
            await house.ask(letter * 6_000)
        said = await house.ask("/export")
        assert "The beginning is left out" in said
        assert "dddd" in said
        assert "aaaa" not in said
        assert len(said) < transcript_commands.MAX_EXPORT_CHARACTERS + 1_000

    async def test_says_so_when_there_is_nothing(self, house: House) -> None:
        assert "no conversation" in await house.ask("/export")
        await house.ask("/new")
        assert "nothing to export" in await house.ask("/export")


class TestForget:
    async def test_asks_first_and_tells_the_truth(self, house: House) -> None:
        await house.ask("hello")
        before = await current(house)
        for text in ("/forget", "/forget it"):
            said = await house.ask(text)
            assert "/forget yes" in said
            assert "stays in the database" in said
        assert await current(house) == before

    async def test_ends_it_for_good(self, house: House) -> None:
        await two_titled(house)
        beta = (await current(house)).id
        assert "Forgotten" in await house.ask("/forget YES")
        session = await house.store.sessions.find(beta)
        assert session is not None
        assert (session.reason, session.title) == (EndReason.FORGOTTEN, None)
        assert "Beta" not in await house.ask("/resume")
        assert beta not in await house.ask("/sessions")
        await house.ask("next")
        assert len(await house.transcript()) == 2
        assert "now" in await house.ask("/title Beta")

    async def test_ends_one_that_was_merely_closed(self, house: House) -> None:
        await house.ask("hello")
        old = (await current(house)).id
        await house.sessions.close_session(old)
        await house.ask("/forget yes")
        await house.ask("next")
        assert (await current(house)).id != old

    async def test_needs_a_conversation(self, house: House) -> None:
        assert "no conversation" in await house.ask("/forget yes")


class TestCheckpoints:
    async def test_directory_goes_back_and_forth(self, staffed: House, tmp_path: Path) -> None:
        file, other = tmp_path / "work" / "a.txt", tmp_path / "work" / "b.txt"
        file.write_text("old")
        said = await staffed.ask("/checkpoint before the move", user="root")
        assert "/rollback 1" in said
        assert "Nothing has changed" in await staffed.ask("/checkpoint", user="root")
        file.write_text("new")
        other.write_text("new")
        assert '1. "before the move"' in await staffed.ask("/rollback", user="root")
        said = await staffed.ask("/rollback 1", user="root")
        assert (file.read_text(), other.exists()) == ("old", False)
        assert "To undo this: /rollback 2" in said
        snapshots = staffed.gateway.parts.snapshots
        assert snapshots
        safety = (await snapshots.list_checkpoints(tmp_path / "work"))[0]
        turn = await staffed.store.turns.find(safety.turn_id or "")
        assert turn
        assert turn.text == "/rollback 1"
        await staffed.ask("/rollback 2 a.txt", user="root")
        assert (file.read_text(), other.exists()) == ("new", False)
        logged = [row.entry for row in await staffed.store.confirmations.audit_newest(10)]
        assert {each.actor for each in logged} == {"matrix:root"}
        assert [(each.kind, "undoes" in each.facts) for each in logged[::2]] == [
            (AuditKind.RESTORED, True),
            (AuditKind.RESTORED, False),
        ]

    async def test_unknown_ones_change_nothing(self, staffed: House, tmp_path: Path) -> None:
        assert "no checkpoints yet" in await staffed.ask("/rollback", user="root")
        (tmp_path / "work" / "a.txt").write_text("old")
        await staffed.ask("/checkpoint", user="root")
        for wanted in ("7", "nonsense", "../../etc"):
            assert "There is no checkpoint" in await staffed.ask(f"/rollback {wanted}", user="root")
        assert "does not hold" in await staffed.ask("/rollback 1 missing.txt", user="root")
        assert "refused" in await staffed.ask("/rollback 1 ../outside", user="root")

    @pytest.mark.parametrize("text", ["/checkpoint", "/rollback", "/rollback 1"])
    async def test_are_for_administrators(self, staffed: House, text: str) -> None:
        assert "may not" in await staffed.ask(text, user="ann")

    async def test_are_for_the_owner_of_the_terminal(self, tmp_path: Path) -> None:
        async with open_house(f"sqlite:///{tmp_path}/state.db", notebook=Notebook("local")) as house:
            said = await house.ask("/checkpoint", source=SessionSource.local_cli())
            assert "switched off" in said


@pytest.mark.parametrize("text", ["/approve c_1", "/deny c_1 too dangerous"])
async def test_decision_is_answered_while_a_turn_hangs(house: House, text: str) -> None:
    await hang(house)
    assert "may not" in await house.ask(text)


@pytest.mark.parametrize("text", ["/approve", "/deny"])
async def test_decision_asks_for_an_id(house: House, text: str) -> None:
    assert f"{text} ID" in await house.ask(text)


class TestPeople:
    async def test_administrator_lets_in_by_code(self, tmp_path: Path) -> None:
        access = Access(administrators=("root",), strangers=Strangers.PAIR)
        notebook = Notebook("matrix", authenticates=False, reliable_sender_ids=True)
        async with open_house(
            f"sqlite:///{tmp_path}/state.db",
            config=GatewayConfig(access={"matrix": access}),
            notebook=notebook,
        ) as house:
            assert "Nobody waits" in await house.ask("/pair", user="root")
            with pytest.raises(errors.NotAllowed):
                await house.say("hello", user="eve")
            (offer,) = await notebook.wait_for(1, "notice")
            code = re.search(r"[A-Z2-9]{4}-[A-Z2-9]{4}", offer)
            assert code
            assert '"matrix:eve"' in await house.ask("/pair", user="root")
            assert "Nothing waits for this code" in await house.ask("/pair AAAA-AAAA", user="root")
            assert "is let in" in await house.ask(f"/pair {code[0].lower()}", user="root")
            assert await house.ask("hello", user="eve") == "echo: hello"
            assert "may not" in await house.ask("/pair", user="eve")
            (row,) = await house.store.confirmations.audit_newest(10)
            assert (row.entry.kind, row.entry.actor) == (AuditKind.PERSON_LET_IN, "matrix:root")
            assert row.entry.facts == {"person": "matrix:eve", "role": "user", "with_code": True}

    async def test_linked_accounts_see_each_others_conversations(self, house: House) -> None:
        await house.ask(f"the {SECRET} is blue", user="ann")
        said = await house.ask("/link", user="ann")
        code = re.search(r"/link (\S+)", said)
        assert code
        assert "2 accounts" in await house.ask(f"/link {code[1]}", user="ann2")
        assert "blue" in await house.ask(f"/search {SECRET}", user="ann2")
        assert "alone again" in await house.ask("/unlink", user="ann2")
        assert "blue" not in await house.ask(f"/search {SECRET}", user="ann2")
        assert "not linked" in await house.ask("/unlink", user="ann2")

    async def test_code_is_not_shown_where_others_read(self, house: House) -> None:
        assert "private chats alone" in await house.ask("/link", source=room(house, "ann"))


class TestHelp:
    async def test_lists_every_command_while_a_turn_hangs(self, house: House) -> None:
        await hang(house)
        said = await house.ask("/help")
        for each in registry.COMMANDS:
            assert f"\n/{each.name}" in said
            assert each.help in said

    @pytest.mark.parametrize("wanted", ["new", "/NEW", "reset"])
    async def test_explains_one(self, house: House, wanted: str) -> None:
        said = await house.ask(f"/help {wanted}")
        assert said.startswith("/new: ")
        assert "/reset" in said
        assert "stops what is running" in said

    async def test_says_so_when_there_is_none(self, house: House) -> None:
        assert 'no command "dance"' in await house.ask("/help dance")


# Only for the caller

ATTEMPTS = [
    "",
    "{id}",
    "{title}",
    "{id} x",
    "1",
    "yes",
    "2",
    f"{SECRET}",
    f"--all {SECRET}",
    "--all",
    "stolen title",
]


@pytest.mark.parametrize("name", ANSWERED)
async def test_nobody_reaches_anothers_conversation(staffed: House, name: str) -> None:
    alpha, beta = await two_titled(staffed, "ann")
    await staffed.ask(f"the {SECRET} is blue", user="ann")
    before = [await staffed.store.sessions.find(each) for each in (alpha, beta)]
    said_before = await staffed.transcript("ann")
    await staffed.ask("hello", user="bob")
    crowd = staffed.source("bob", chat="crowd", chat_type="group")
    for source in (staffed.source("bob"), crowd, room(staffed, "bob")):
        for attempt in ATTEMPTS:
            argument = attempt.format(id=beta, title="Alpha")
            said = await staffed.ask(f"/{name} {argument}", source=source)
            shown = said.replace(f'"{argument}"', "").replace(f'"{beta}"', "").replace('"Alpha"', "")
            assert beta not in shown
            assert alpha not in shown
            assert "blue" not in shown
    assert [await staffed.store.sessions.find(each) for each in (alpha, beta)] == before
    assert await staffed.transcript("ann") == said_before
    assert (await current(staffed, "ann")).id == beta


@pytest.mark.parametrize("name", ANSWERED)
async def test_huge_argument_gets_a_short_answer(staffed: House, name: str) -> None:
    await staffed.ask("hello")
    said = await staffed.ask(f"/{name} " + "x" * 100_000)
    assert len(said) < 3_000


# A command that was cut short runs again


def again(turn: Turn, text: str) -> Turn:
    """The turn of a command as a second attempt finds it."""
    found = registry.parse(text)
    assert found
    return Turn(
        id="t_again",
        kind=TurnKind.COMMAND,
        session_key=turn.session_key,
        source=turn.source,
        text=text,
        role=Role.USER,
        received_at=turn.received_at,
        started_at=turn.started_at,
        attempts=2,
    )


async def run_again(house: House, turn_id: str, text: str) -> str | Rerun:
    """Run a command once more, as after a crash between what it did and its answer."""
    turn = await house.store.turns.find(turn_id)
    assert turn is not None
    found = registry.parse(text)
    assert found
    parts = house.gateway.parts
    viewer = await parts.conversations.shown_in(turn.source)
    request = CommandRequest(turn=again(turn, text), argument=found[1], viewer=viewer)
    return await found[0].handle(parts, request)


@pytest.mark.parametrize(
    "text", ["/new", "/undo", "/redo", "/branch", "/compress", "/resume 2", "/forget yes"]
)
async def test_second_attempt_does_nothing_more(house: House, text: str) -> None:
    await two_titled(house)
    for number in range(12):
        await house.ask(f"number {number}")
    if text == "/redo":
        await house.ask("/undo")
        await house.ask("/undo")
    receipt = await house.say(text)
    await house.finished(receipt.turn_id)
    after, rows = await current(house), await house.transcript()
    said = await run_again(house, receipt.turn_id, text)
    assert isinstance(said, str)
    assert (await current(house)).id == after.id
    assert await house.transcript() == rows


async def test_second_attempt_at_a_retry_asks_the_same(house: House) -> None:
    await house.ask("one")
    await house.ask("two")
    receipt = await house.say("/undo")
    await house.finished(receipt.turn_id)
    assert await run_again(house, receipt.turn_id, "/retry") == Rerun("two")
    assert await texts(house) == ["one", "echo: one"]


# What has changed since a checkpoint


async def test_changes_since_a_checkpoint_are_shown_to_administrators(staffed: House) -> None:
    work = Path(staffed.gateway.parts.running.working_dir or "")
    (work / "plan.md").write_text("1. Ask\n")
    await staffed.ask("/checkpoint first", user="root")
    assert "Nothing has changed since checkpoint 1" in await staffed.ask("/checkpoint diff", user="root")
    (work / "plan.md").write_text("1. Guess\n")
    (work / "new.md").write_text("!\n")
    for text in ("/checkpoint diff", "/checkpoint DIFF 1"):
        said = await staffed.ask(text, user="root")
        assert "Changed since checkpoint 1 (2 paths)" in said
        assert 'changed: "plan.md"' in said
        assert 'added: "new.md"' in said
        assert "-1. Ask\n+1. Guess" in said
    assert "There is no checkpoint" in await staffed.ask("/checkpoint diff 9", user="root")
    assert "1. Guess" not in await staffed.ask("/checkpoint diff", user="ann")
    crowd = staffed.source("root", chat="crowd", chat_type="group")
    assert "private chats" in await staffed.ask("/checkpoint diff", source=crowd)


async def test_long_diff_is_cut_at_a_line_and_says_so(staffed: House) -> None:
    work = Path(staffed.gateway.parts.running.working_dir or "")
    (work / "long.md").write_text("a\n")
    await staffed.ask("/checkpoint", user="root")
    (work / "long.md").write_text("".join(f"line {number}\n" for number in range(5_000)))
    said = await staffed.ask("/checkpoint diff", user="root")
    assert len(said) < 10_000
    assert "There is more" in said


@pytest.mark.parametrize("text", ["/resume", "/resume no such trip"])
async def test_resume_that_leads_nowhere_stops_nothing(house: House, text: str) -> None:
    hanging = await house.say("!hang")
    await house.until(hanging.turn_id, TurnState.RUNNING)
    waiting = await house.say(text)
    running = await house.store.turns.find(hanging.turn_id)
    assert running
    assert (running.state, running.stop_requested) == (TurnState.RUNNING, False)
    await house.say("/stop")
    assert (await house.finished(waiting.turn_id)).state is TurnState.DONE


async def stops(house: House, turn_id: str, text: str) -> bool:
    """Whether a command stops a turn."""
    await house.say(text)
    running = await house.store.turns.find(turn_id)
    return running is None or running.state is not TurnState.RUNNING or running.stop_requested


async def test_resume_of_a_forgotten_conversation_stops_nothing(house: House) -> None:
    await house.ask("hello")
    other = await house.sessions.peek_session_id(await house.key())
    await house.ask("/forget yes")
    hanging = await house.say("!hang")
    await house.until(hanging.turn_id, TurnState.RUNNING)
    assert not await stops(house, hanging.turn_id, f"/resume {other}")


async def test_resume_of_a_conversation_at_work_elsewhere_stops_nothing(house: House) -> None:
    there = house.source(chat="elsewhere")
    await house.ask("hello", source=there)
    await house.ask("/title Other", source=there)
    busy = await house.say("!hang", source=there)
    await house.until(busy.turn_id, TurnState.RUNNING)
    hanging = await house.say("!hang")
    await house.until(hanging.turn_id, TurnState.RUNNING)
    assert not await stops(house, hanging.turn_id, "/resume Other")


async def test_resume_of_another_conversation_stops_what_runs(house: House) -> None:
    await house.ask("hello")
    await house.ask("/title Before")
    await house.ask("/new")
    hanging = await house.say("!hang")
    await house.until(hanging.turn_id, TurnState.RUNNING)
    assert "You are back in" in await house.ask("/resume Before")
    assert (await house.finished(hanging.turn_id)).state is TurnState.INTERRUPTED
