"""What a person said in private stays out of every chat that others read, whatever command is given there."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from frontdesk import CheckpointManager, GatewayConfig, ResetMode, SessionResetPolicy, SessionSource
from frontdesk.flow.commands import registry
from frontdesk.model.access import Access, Strangers
from frontdesk.model.running import Running
from frontdesk.model.sessions import Session
from tests import counts
from tests.flow.harness import House, Notebook, open_house

LASTING = SessionResetPolicy(mode=ResetMode.NONE, max_messages=0)
ACCESS = {"matrix": Access(administrators=("ann",), allow=("bob",), strangers=Strangers.PAIR)}
TEXT, TITLE, LABEL, MODEL, STRANGER = "xylophone", "Quokka", "wombat", "narwhal", "Mallory"

CROWDS: dict[str, dict[str, Any]] = {
    "a group of people with a session each": {"chat_type": "group"},
    "a channel": {"chat_type": "channel"},
    "a thread that is shared": {"chat_type": "group", "thread_id": "7"},
    "a chat that is a thread": {"chat_type": "thread", "thread_id": "8"},
}
SHARED_GROUPS = {"a group of people who share a session": {"chat_type": "group"}}
CASES = [
    *((fields, True) for fields in CROWDS.values()),
    *((fields, False) for fields in SHARED_GROUPS.values()),
]


@asynccontextmanager
async def opened(url: str, tmp_path: Path, *, per_user: bool = True) -> AsyncIterator[House]:
    work = tmp_path / "work"
    work.mkdir()
    async with open_house(
        url,
        config=GatewayConfig(default_reset_policy=LASTING, access=ACCESS, group_sessions_per_user=per_user),
        running=Running(drain_seconds=1.0, checkpoints=True, working_dir=str(work)),
        notebook=Notebook("matrix", reliable_sender_ids=True, authenticates=False),
        snapshots=CheckpointManager(root=tmp_path / "checkpoints"),
    ) as house:
        yield house


async def current(house: House, source: SessionSource) -> Session:
    session = await house.store.sessions.current(await house.sessions.session_key_for(source))
    assert session is not None
    return session


async def live_privately(house: House, work: Path) -> list[str]:
    """Ann has private conversations with everything in them that a command could show; their ids."""
    ids = []
    for title in (TITLE, f"{TITLE} again"):
        await house.ask(f"my {TEXT} is at home")
        await house.ask(f"/model {MODEL}")
        await house.ask(f"/title {title}")
        (work / title).write_text(title)
        await house.ask(f"/checkpoint {LABEL}")
        ids.append((await current(house, house.source())).id)
        await house.ask("/new")
    await house.ask(f"my {TEXT} is at home")
    stranger = house.source("eve", user_name=STRANGER)
    with pytest.raises(Exception, match="may not"):
        await house.say("let me in", source=stranger)
    return [*ids, (await current(house, house.source())).id]


SHARES = counts.count(3, 1)
"""Into how many parts the arguments of each command are divided: each kind of chat tries one of them."""


def everything_to_try(ids: list[str], share: int) -> list[str]:
    """Every command with everything that could lead it to something private. What one is given to keep is
    shown again by right."""
    looked_for = [f"{TEXT[:5]}*", f"--all {TEXT[:5]}*", TITLE, f'"{TITLE}"', *ids]
    arguments = {each.name: [""] for each in registry.COMMANDS}
    for each in registry.COMMANDS:
        if each.usage or each.name == "sessions":
            arguments[each.name] += ["1", "2", "yes", "--all", *looked_for]
    kept = ("title", "model", "checkpoint", "undo", "queue", "steer")
    arguments |= {name: ["", "ours"] for name in kept}
    return [
        f"/{name} {argument}".strip()
        for name, given in arguments.items()
        for argument in given[share % min(SHARES, len(given)) :: SHARES]
    ]


def private_words(text: str, ids: list[str], typed: str) -> list[str]:
    """What is private in a text and was not typed by the caller just now."""
    secrets = ["at home", TITLE, LABEL, MODEL, STRANGER, *ids]
    return [secret for secret in secrets if secret in text and secret not in typed]


@pytest.mark.parametrize("case", range(len(CASES)), ids=[*CROWDS, *SHARED_GROUPS])
async def test_no_command_shows_private_words_where_others_read(
    store_url: str, tmp_path: Path, case: int
) -> None:
    fields, per_user = CASES[case]
    async with opened(store_url, tmp_path, per_user=per_user) as house:
        ids = await live_privately(house, tmp_path / "work")
        before = [await house.store.sessions.find(each) for each in ids]
        crowd = house.source("ann", chat="crowd", **fields)
        await house.ask("hello everybody", source=crowd)
        for typed in everything_to_try(ids, case):
            said = await house.ask(typed, source=crowd)
            assert private_words(said, ids, typed) == [], typed
            assert (await current(house, crowd)).id not in ids
        shown = await house.ask("!show system; !show model", source=crowd)
        given = await house.sessions.load_transcript((await current(house, crowd)).id)
        assert private_words(f"{shown}{given}", ids, "") == []
        assert [await house.store.sessions.find(each) for each in ids] == before
        heard = [each for each in house.notebook.sent if each.to.chat_id == "crowd"]
        assert len(heard) >= len(registry.COMMANDS)


@pytest.mark.parametrize("fields", CROWDS.values(), ids=CROWDS)
async def test_lists_offer_a_direct_chat_where_others_read(house: House, fields: dict[str, Any]) -> None:
    await house.ask("hello")
    crowd = house.source("ann", chat="crowd", **fields)
    await house.ask("hello", source=crowd)
    for command in ("/sessions", "/resume", "/resume Plans", "/search hello", "/search nothing"):
        assert "direct chat" in await house.ask(command, source=crowd)
        assert "direct chat" not in await house.ask(command)


async def test_own_session_of_a_group_is_listed_found_and_resumed_there(house: House) -> None:
    group = house.source("ann", chat="crowd", chat_type="group")
    await house.ask("the heron is grey", source=group)
    await house.ask("/title Birds", source=group)
    mine = (await current(house, group)).id
    await house.ask("/new", source=group)
    for command in ("/sessions", "/resume", "/search heron"):
        said = await house.ask(command, source=group)
        assert "Birds" in said, command
    assert "back" in await house.ask("/resume Birds", source=group)
    assert (await current(house, group)).id == mine
    assert "heron" in await house.ask("/export", source=group)


async def test_own_session_of_a_group_is_not_shown_in_another_group(house: House) -> None:
    await house.ask("the heron is grey", source=house.source("ann", chat="crowd", chat_type="group"))
    other = house.source("ann", chat="others", chat_type="group")
    await house.ask("hello", source=other)
    assert "grey" not in await house.ask("/search heron", source=other)
    assert len((await house.ask("/sessions", source=other)).splitlines()) == 4


async def test_own_session_of_a_group_goes_on_in_private_and_stays_there(house: House) -> None:
    group = house.source("ann", chat="crowd", chat_type="group")
    await house.ask("the heron is grey", source=group)
    await house.ask("/title Birds", source=group)
    await house.ask("hello")
    assert "back" in await house.ask("/resume Birds")
    await house.ask("and it is shy")
    assert "This chat has no conversation" in await house.ask("/resume Birds", source=group)
    assert "shy" not in await house.ask("/search heron", source=group)


@pytest.mark.parametrize("per_user", [True, False])
async def test_shared_session_is_reached_from_its_chat_alone(
    store_url: str, tmp_path: Path, per_user: bool
) -> None:
    thread = {"thread_id": "7"} if per_user else {}
    async with opened(store_url, tmp_path, per_user=per_user) as house:
        shared = house.source("ann", chat="crowd", chat_type="group", **thread)
        await house.ask("our heron is grey", source=shared)
        await house.ask("/title Ours", source=shared)
        theirs = (await current(house, shared)).id
        await house.ask("hello")
        for command in ("/sessions", "/resume", "/resume Ours", f"/resume {theirs}", "/search heron"):
            said = await house.ask(command)
            assert "grey" not in said
            assert "back" not in said
        assert (await current(house, shared)).id == theirs


async def test_title_of_a_private_conversation_is_not_given_away_by_a_refusal(house: House) -> None:
    await house.ask("hello")
    await house.ask("/title Plans")
    group = house.source("ann", chat="crowd", chat_type="group")
    await house.ask("hello", source=group)
    said = await house.ask("/title Plans", source=group)
    assert "cannot be used" in said
    assert "conversation" not in said
    assert (await current(house, group)).title is None


async def test_session_taken_into_private_meanwhile_is_not_resumed_in_the_group(house: House) -> None:
    group = house.source("ann", chat="crowd", chat_type="group")
    await house.ask("hello", source=group)
    old = (await current(house, group)).id
    await house.ask("/new", source=group)
    shown = await house.sessions.shown_in(group)
    await house.ask("hello")
    await house.ask(f"/resume {old}")
    key = await house.sessions.session_key_for(group)
    assert await house.sessions.switch_session(key, old, shown) is None
    assert (await current(house, house.source())).id == old


async def test_export_in_a_group_leaves_out_what_was_said_before_elsewhere(house: House) -> None:
    """A conversation that was compressed in private and brought here by other means."""
    await house.ask("the heron is grey")
    await house.sessions.compress_session(await house.key(), [{"role": "user", "content": "short"}])
    tip = (await current(house, house.source())).id
    group = house.source("ann", chat="crowd", chat_type="group")
    await house.ask("hello", source=group)
    await house.sessions.switch_session(await house.sessions.session_key_for(group), tip)
    said = await house.ask("/export", source=group)
    assert "short" in said
    assert "grey" not in said


async def test_reset_notice_in_a_group_names_nothing_private(store_url: str) -> None:
    policy = SessionResetPolicy(mode=ResetMode.NONE, max_messages=2)
    async with open_house(store_url, config=GatewayConfig(default_reset_policy=policy)) as house:
        await house.ask("the heron is grey")
        await house.ask("/title Birds")
        private = (await current(house, house.source())).id
        group = house.source("ann", chat="crowd", chat_type="group")
        await house.ask("one", source=group)
        await house.notebook.wait_for(2, "notice")
        told = [each.text for each in house.notebook.sent if each.to.chat_id == "crowd"]
        assert any("New session" in each for each in told)
        assert private_words(" ".join(told), [private, "Birds"], "") == []
