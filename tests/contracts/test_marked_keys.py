"""Stores from before keys had marks: everybody finds what is theirs, and nobody what is another's."""

import json
from typing import Any

import msgspec
import pytest

from frontdesk import GatewayConfig, Platform, SessionSource, SessionStore
from frontdesk.model.keys import encode_part
from frontdesk.model.rules import Effect
from frontdesk.model.turns import TurnState
from tests.contracts.samples import LASTING
from tests.contracts.versions import OldStore
from tests.flow.harness import Notebook, open_house

AT = 1_790_000_000_000_000
CHAT = "a/b"
ANN = {"platform": "webhook", "chat_type": "group", "chat_id": CHAT, "user_id": "ann"}
SEVEN = {"platform": "webhook", "chat_type": "group", "chat_id": CHAT, "user_id": "7"}
THREAD_7 = {"platform": "webhook", "chat_type": "group", "chat_id": CHAT, "thread_id": "7", "user_id": "bob"}
NO_CHAT = {"platform": "webhook", "chat_type": "group", "thread_id": "9", "user_id": "bob"}
CHAT_9 = {"platform": "webhook", "chat_type": "group", "chat_id": "9"}
DM_OF = {"platform": "webhook", "user_id": "cleo"}
AT_X = {"platform": "webhook", "chat_type": "group", "chat_id": CHAT, "user_id": "@x"}
X = {"platform": "webhook", "chat_type": "group", "chat_id": CHAT, "user_id": "x"}
PLUGGED = {"platform": "bottle-post", "chat_type": "group", "chat_id": "loft", "user_id": "ann"}
TELEGRAM = {"platform": "telegram", "chat_type": "group", "chat_id": "-1", "user_id": "7"}

NOW = {
    "ann": (ANN, "agent:main:webhook:group:a%2Fb:@ann"),
    "the person 7": (SEVEN, "agent:main:webhook:group:a%2Fb:@7"),
    "a thread without a chat": (NO_CHAT, "agent:main:webhook:group:#9"),
    "a person without a chat": (DM_OF, "agent:main:webhook:dm:@cleo"),
    "a person called @x": (AT_X, "agent:main:webhook:group:a%2Fb:@%40x"),
    "a person called x": (X, "agent:main:webhook:group:a%2Fb:@x"),
    "a platform that nobody registered": (PLUGGED, "agent:main:bottle-post:group:loft:@ann"),
    "a platform whose ids are its own": (TELEGRAM, "agent:main:telegram:group:-1:7"),
}


def old_key(origin: dict[str, str], *, namespace: str = "main", per_user: bool = True) -> str:
    """The key as it was made before there were marks."""
    chat, thread, person = (origin.get(name) for name in ("chat_id", "thread_id", "user_id"))
    kind = origin.get("chat_type", "dm")
    if kind == "dm":
        parts = [chat or person or thread, thread if chat or person else None]
    else:
        parts = [chat, thread, person if per_user and not thread else None]
    head = ["agent", namespace, origin["platform"], kind]
    return ":".join([*head, *(encode_part(part) for part in parts if part)])


def owner_of(origin: dict[str, str]) -> str:
    shared = bool(origin.get("thread_id")) or "user_id" not in origin
    return old_key(origin) if shared else f"{origin['platform']}:{encode_part(origin['user_id'])}"


def put_session(
    old: OldStore, name: str, origin: dict[str, str], *, routed: bool = True, **fields: Any
) -> str:
    """A session with a message in it; its id."""
    key = fields.pop("session_key", None) or old_key(origin)
    values: dict[str, Any] = {
        "session_key": key,
        "owner": owner_of(origin),
        "peer": name,
        "platform": origin["platform"],
    }
    values |= {"chat_type": origin.get("chat_type", "dm"), "created_at": AT, "updated_at": AT}
    details = json.dumps({"origin": origin}).encode()
    values |= {"details": details, "active_minute": AT // 60_000_000, "next_position": 1, "message_count": 1}
    old.add("sessions", id=name, **values | fields)
    if routed:
        old.add("routes", session_key=key, session_id=name)
    body = json.dumps({"role": "user", "content": f"heron of {name}", "platform_message_id": "m1"}).encode()
    old.add(
        "messages", session_id=name, position=0, role="user", created_at=AT, body=body,
        platform_message_id="m1", source_key=key,
    )  # fmt: skip
    return name


def put_turn(old: OldStore, name: str, origin: dict[str, str], text: str, **fields: Any) -> str:
    key = old_key(origin)
    values: dict[str, Any] = {"lane": f"turn:{key}", "kind": "message", "state": "queued", "session_key": key}
    values |= {
        "platform": origin["platform"],
        "account": "",
        "event_id": name,
        "received_at": AT,
        "due_at": AT,
    }
    body = json.dumps({"source": origin, "text": text, "role": "user"}).encode()
    old.add("turns", id=name, body=body, **values | fields)
    return name


def put_lane(old: OldStore, origin: dict[str, str], **fields: Any) -> None:
    values = {"name": f"turn:{old_key(origin)}", "kind": "turn", "due_at": AT}
    old.add("lanes", **values | fields)


@pytest.fixture
def old(store_url: str) -> OldStore:
    return OldStore(store_url, "mark_keys")


async def reopened(old: OldStore, store_url: str, config: GatewayConfig = LASTING) -> SessionStore:
    await old.write()
    return await SessionStore.open(store_url, config)


async def test_everybody_finds_their_session_under_the_key_that_is_made_now(
    old: OldStore, store_url: str
) -> None:
    for name, (origin, _) in NOW.items():
        put_session(old, name, origin)
    async with await reopened(old, store_url) as store:
        for name, (_, key) in NOW.items():
            entry = await store.get_session(key)
            assert entry is not None, name
            assert (entry.session_id, entry.session_key) == (name, key)
        known = {name: origin for name, (origin, _) in NOW.items() if origin is not PLUGGED}
        for name, origin in known.items():
            source = SessionSource.from_dict(origin)
            assert (await store.get_or_create_session(source)).session_id == name
            [hit] = await store.search("heron", await store.shown_in(source))
            assert hit.session_id == name
        assert len(await store.list_sessions()) == len(NOW)


async def test_whoever_began_the_session_keeps_it_where_two_shared_a_key(
    old: OldStore, store_url: str
) -> None:
    put_session(old, "begun by 7", SEVEN)
    put_session(old, "begun in thread 9", NO_CHAT)
    async with await reopened(old, store_url) as store:
        assert (await store.get_or_create_session(SessionSource.from_dict(SEVEN))).session_id == "begun by 7"
        in_thread = await store.get_or_create_session(SessionSource.from_dict(THREAD_7))
        assert in_thread.session_id != "begun by 7"
        in_chat = await store.get_or_create_session(SessionSource.from_dict(CHAT_9))
        assert in_chat.session_id != "begun in thread 9"
        assert await store.load_transcript(in_thread.session_id) == []


async def test_earlier_sessions_go_where_each_of_them_began(old: OldStore, store_url: str) -> None:
    put_session(old, "the thread's", THREAD_7)
    put_session(old, "the person's", SEVEN, routed=False, ended_at=AT, end_reason="new")
    async with await reopened(old, store_url) as store:
        thread, person = map(SessionSource.from_dict, (THREAD_7, SEVEN))
        for source, name in ((thread, "the thread's"), (person, "the person's")):
            listed = await store.list_own_sessions(await store.shown_in(source))
            assert [session.id for session in listed] == [name]


async def test_shared_settings_profiles_and_accounts_are_seen_in_the_key(
    old: OldStore, store_url: str
) -> None:
    put_session(old, "profile", ANN, session_key=old_key(ANN, namespace="coder"))
    put_session(old, "no person", {**X, "chat_id": "@shared"}, session_key="agent:main:webhook:group:@shared")
    put_session(old, "odd", ANN, session_key="agent:main:webhook:group:another", routed=False)
    async with await reopened(old, store_url) as store:
        for name, key in {
            "profile": "agent:coder:webhook:group:a%2Fb:@ann",
            "no person": "agent:main:webhook:group:%40shared",
        }.items():
            assert await store.peek_session_id(key) == name
        odd = await store.lookup_by_session_id("odd")
        assert odd is not None
        assert odd.session_key == "agent:main:webhook:group:another"


async def test_message_that_comes_again_is_still_known(old: OldStore, store_url: str) -> None:
    put_session(old, "ann", ANN)
    async with await reopened(old, store_url) as store:
        again = {"role": "user", "content": "heron of ann", "platform_message_id": "m1"}
        await store.append_to_transcript("ann", again)
        assert len(await store.load_transcript("ann")) == 1


async def test_title_stays_and_is_found(old: OldStore, store_url: str) -> None:
    put_session(old, "thread", NO_CHAT, title="Ours", title_key="ours")
    put_session(old, "ann", ANN, title="Ours", title_key="ours")
    async with await reopened(old, store_url) as store:
        for name, origin in (("thread", NO_CHAT), ("ann", ANN)):
            viewer = await store.shown_in(SessionSource.from_dict(origin))
            found = await store.find_title("ours", viewer)
            assert found is not None
            assert found.id == name


async def test_waiting_turns_are_run_each_in_its_own_conversation(old: OldStore, store_url: str) -> None:
    put_session(old, "begun by 7", SEVEN)
    put_turn(old, "t1", SEVEN, "from 7")
    put_turn(old, "t2", THREAD_7, "from the thread")
    put_turn(old, "t3", ANN, "from ann")
    put_lane(old, SEVEN)
    put_lane(old, ANN)
    await old.write()
    notebook = Notebook("webhook")
    async with open_house(store_url, config=LASTING, notebook=notebook) as house:
        for name in ("t1", "t2", "t3"):
            assert (await house.finished(name)).state is TurnState.DONE
        said = await house.sessions.load_transcript("begun by 7")
        assert [row["content"] for row in said] == ["heron of begun by 7", "from 7", "echo: from 7"]
        key = await house.sessions.session_key_for(SessionSource.from_dict(THREAD_7))
        thread = await house.sessions.peek_session_id(key)
        assert thread
        rows = await house.sessions.load_transcript(thread)
        assert rows[0]["content"].endswith("from the thread")
        assert await house.store.turns.counts() == {}


async def test_turn_that_was_running_is_taken_up_again(old: OldStore, store_url: str) -> None:
    put_session(old, "begun by 7", SEVEN)
    old.add("nodes", name="gone", started_at=AT)
    put_turn(old, "t1", SEVEN, "hello", state="running", attempts=1, session_id="begun by 7", started_at=AT)
    put_turn(old, "t2", SEVEN, "and then")
    put_lane(old, SEVEN, due_at=None, holder=1, token=3, leased_until=AT)
    await old.write()
    config = msgspec.structs.replace(LASTING, auto_continue_freshness_seconds=0)  # however long ago that was
    async with open_house(store_url, config=config, notebook=Notebook("webhook")) as house:
        for name in ("t1", "t2"):
            turn = await house.finished(name)
            assert (turn.state, turn.session_id) == (TurnState.DONE, "begun by 7")
            assert turn.session_key == "agent:main:webhook:group:a%2Fb:@7"


async def test_what_was_said_and_asked_is_told_of_the_present_key(old: OldStore, store_url: str) -> None:
    put_session(old, "ann", ANN)
    put_turn(old, "t1", ANN, "hello", state="done", finished_at=AT, session_id="ann")
    key = old_key(ANN)
    to = json.dumps({"to": ANN, "text": "hi"}).encode()
    for name, turn in (("d1", "t1"), ("d2", None)):
        old.add(
            "deliveries", id=name, lane="chat:webhook::a:", state="sent", kind="reply", platform="webhook",
            account="", turn_id=turn, session_id="ann", session_key=key, created_at=AT, due_at=AT, body=to,
        )  # fmt: skip
        old.add("feed", at=AT, kind="turn", session_key=key, session_id="ann", turn_id=turn, state="done")
    rule = {"id": "r1", "effect": str(Effect.DENY), "session_key": key}
    old.add("rules", id="r1", body=json.dumps(rule).encode())
    for name, turn in (("c1", "t1"), ("c2", None)):
        old.add(
            "confirmations", id=name, action="deploy", reads_as="deploy", digest="d",
            requester=f"agent:{key}", session_key=key, turn_id=turn, status="denied", asked=1, terms=b"{}",
            timeout_seconds=300, created_at=AT, expires_at=AT, resolved_at=AT, resolved_by="token:ann",
            approvals=b"[]",
        )  # fmt: skip
    async with await reopened(old, store_url) as store:
        assert await store.peek_session_id("agent:main:webhook:group:a%2Fb:@ann") == "ann"
    async with open_house(store_url, config=LASTING, notebook=Notebook("webhook")) as house:
        new = "agent:main:webhook:group:a%2Fb:@ann"
        [said] = await house.store.deliveries.of_turn("t1")
        assert said.session_key == new
        rules = await house.gateway.parts.confirmations.rules()
        assert [each.session_key for each in rules if each.id == "r1"] == [new]
        for name in ("c1", "c2"):
            asked = await house.store.confirmations.find(name)
            assert asked is not None
            assert (asked.session_key, asked.requester) == (new, f"agent:{new}")


async def test_opening_a_second_time_changes_nothing(old: OldStore, store_url: str) -> None:
    for name, (origin, _) in NOW.items():
        put_session(old, name, origin)
    async with await reopened(old, store_url) as store:
        before = await store.list_sessions()
    async with await SessionStore.open(store_url, LASTING) as store:
        assert await store.list_sessions() == before


async def test_entry_that_tells_nothing_of_its_origin_stays_as_it_is(old: OldStore, store_url: str) -> None:
    put_session(old, "without origin", ANN, details=b"{}")
    put_session(old, "unreadable", X, details=b"{")
    async with await reopened(old, store_url) as store:
        for name, origin in (("without origin", ANN), ("unreadable", X)):
            assert await store.peek_session_id(old_key(origin)) == name


def test_platform_is_one_that_nobody_registered() -> None:
    assert Platform.parse("bottle-post") is None
