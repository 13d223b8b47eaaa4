"""Writing and acting over the HTTP API: who may, what the chat sees, and that it happens once."""

import asyncio
import json
import re
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest

from frontdesk.app.office import Office
from frontdesk.app.office.writing import MOST_CHATS
from frontdesk.channels import web
from frontdesk.flow import notices
from frontdesk.model import deliveries, repeats
from frontdesk.model.access import Role
from frontdesk.model.repeats import KeyedCall
from frontdesk.model.running import Running
from frontdesk.model.sources import ChatType
from frontdesk.model.turns import TurnState
from frontdesk.web import office_api
from frontdesk.web.operations import LOOKING, Form
from frontdesk.web.repeats import MOST_KEPT_BYTES
from tests.flow.harness import House, Notebook, Resting, open_house, poll
from tests.integration.visitors import NAME, VISITORS, site_of

ANN, BOB, ADA, VIC = "ann", "bob", "ada", "vic"

ORDERS = ("stop", "reset", "resume", "rename", "branch", "compress", "undo", "redo", "forget")


class Front:
    """The API of a gateway, and those who call it by their names."""

    def __init__(self, house: House, client: httpx.AsyncClient) -> None:
        self.house = house
        self.client = client

    async def post(self, who: str, path: str, key: str | None = None, **said: Any) -> httpx.Response:
        headers = {NAME: who} | ({"Idempotency-Key": key} if key else {})
        return await self.client.post(f"/api/v1{path}", json=said, headers=headers)

    async def get(self, who: str, path: str) -> httpx.Response:
        return await self.client.get(f"/api/v1{path}", headers={NAME: who})

    async def session(self, user: str = "ann", **fields: Any) -> str:
        """The id of somebody's session, in which something was said."""
        await self.house.ask("hello", user, **fields)
        source = fields.get("source") or self.house.source(user)
        key = await self.house.sessions.session_key_for(source)
        found = await self.house.sessions.peek_session_id(key)
        assert found
        return found


@asynccontextmanager
async def open_front(url: str, **more: Any) -> AsyncIterator[Front]:
    page = web.Channel(web.Options())
    async with (
        open_house(url, others=[page], **more) as house,
        site_of(house) as address,
        httpx.AsyncClient(base_url=address, timeout=60, trust_env=False) as client,
    ):
        yield Front(house, client)


@pytest.fixture
def store_url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/state.db"


async def test_message_from_the_page_is_shown_in_its_chat_before_the_answer(store_url: str) -> None:
    async with open_front(store_url) as front:
        session = await front.session()
        taken = await front.post(ANN, f"/sessions/{session}/messages", text="and now")
        assert taken.status_code == 202, taken.text
        await front.house.finished(taken.json()["turn_id"])
        await front.house.notebook.wait_for(2)
        said = [(each.kind, each.text) for each in front.house.notebook.sent][1:]
        assert said == [
            (deliveries.DeliveryKind.NOTICE, "Ann, from the page: and now"),
            (deliveries.DeliveryKind.REPLY, "echo: and now"),
        ]
        (row,) = [each for each in await front.house.transcript() if each["content"] == "and now"]
        assert row["author"] == "Ann"


async def test_who_writes_for_another_is_named_to_the_agent(store_url: str) -> None:
    async with open_front(store_url) as front:
        session = await front.session()
        taken = await front.post(ADA, f"/sessions/{session}/messages", text="it is me")
        turn = await front.house.finished(taken.json()["turn_id"])
        assert turn.author
        assert turn.role == Role.USER
        rows = await front.house.transcript()
        assert rows[-2]["content"] == "[Ada] it is me"
        page = (await front.client.get(f"/sessions/{session}", headers={NAME: ADA})).text
        said = re.findall(r'<p class="line"><b><bdi>(.*?)</bdi></b>', page)
        assert said == ["Ann", "agent", "Ada", "agent"]
        assert ">it is me</p>" in page, "without the name that the agent is given"


async def test_name_of_who_writes_stands_before_the_text_in_a_shared_chat(store_url: str) -> None:
    async with open_front(store_url) as front:
        thread = front.house.source("ann", chat="room", chat_type=ChatType.THREAD, thread_id="7")
        session = await front.session(source=thread)
        taken = await front.post(ADA, f"/sessions/{session}/messages", text="it is me")
        await front.house.finished(taken.json()["turn_id"])
        rows = await front.house.sessions.load_transcript(session)
        assert [each["content"] for each in rows if each["role"] == "user"] == [
            "[Ann] hello",
            "[Ada] it is me",
        ]


async def test_nobody_acts_on_anothers_session_and_a_viewer_on_none(store_url: str) -> None:
    async with open_front(store_url) as front:
        session = await front.session()
        said = {"messages": {"text": "hi"}, "rename": {"title": "Mine"}}
        for what in ("messages", *ORDERS):
            path, body = f"/sessions/{session}/{what}", said.get(what, {})
            hidden, refused = await front.post(BOB, path, **body), await front.post(VIC, path, **body)
            assert (hidden.status_code, hidden.json()["type"]) == (404, "urn:frontdesk:unknown_session"), what
            assert (refused.status_code, refused.json()["code"]) == (403, "not_allowed"), what
        taken = await front.post(ANN, f"/sessions/{session}/messages", text="mine")
        turn_id = taken.json()["turn_id"]
        await front.house.finished(turn_id)
        assert (await front.get(BOB, f"/turns/{turn_id}")).status_code == 404
        assert (await front.get(BOB, f"/turns/{turn_id}/events")).status_code == 404
        assert (await front.get(VIC, f"/turns/{turn_id}")).json()["state"] == "done"
        assert len(await front.house.transcript()) == 4


async def test_orders_are_carried_out_in_the_conversation_and_answered_to_both(store_url: str) -> None:
    async with open_front(store_url) as front:
        session = await front.session()
        named = (await front.post(ANN, f"/sessions/{session}/rename", title="Invoices")).json()
        assert named["is_over"]
        assert named["refused"] is None
        assert "called" in named["message"]
        undone = (await front.post(ANN, f"/sessions/{session}/undo")).json()
        assert "Took back 1 turn" in undone["message"]
        assert await front.house.transcript() == []
        assert "Brought back" in (await front.post(ANN, f"/sessions/{session}/redo")).json()["message"]
        branched = (await front.post(ANN, f"/sessions/{session}/branch")).json()
        assert branched["session_id"] != session
        reset = (await front.post(ANN, f"/sessions/{branched['session_id']}/reset")).json()
        gone = await front.post(ANN, f"/sessions/{session}/reset")
        assert gone.status_code == 409
        resumed = (await front.post(ANN, f"/sessions/{session}/resume")).json()
        assert resumed["session_id"] == session
        assert reset["session_id"] not in (session, branched["session_id"])
        forgotten = (await front.post(ANN, f"/sessions/{session}/forget")).json()
        assert "Forgotten" in forgotten["message"]
        await front.house.notebook.wait_for(8)
        told = front.house.notebook.notices
        assert "Ann, from the page: /title Invoices" in told


async def test_what_becomes_of_a_message_while_a_turn_runs_is_chosen_only_then(store_url: str) -> None:
    agent = Resting()
    async with open_front(store_url, agent=agent) as front:
        path = f"/sessions/{await front.session()}"
        assert 'id="busy"' not in (await front.client.get(path, headers={NAME: ANN})).text
        resting = await front.house.say("!rest")
        await front.house.until(resting.turn_id, TurnState.RUNNING)
        assert 'id="busy"' in (await front.client.get(path, headers={NAME: ANN})).text
        agent.may_go_on.set()


async def test_order_behind_what_runs_says_that_it_waits_and_is_carried_out_after_it(store_url: str) -> None:
    agent = Resting()
    async with open_front(store_url, agent=agent) as front:
        session = await front.session()
        resting = await front.house.say("!rest")
        await front.house.until(resting.turn_id, TurnState.RUNNING)
        named = await front.post(ANN, f"/sessions/{session}/rename", title="Later")
        assert named.status_code == 202
        assert (named.json()["waits"], named.json()["is_over"]) == (True, False)
        assert named.json()["message"] == "It happens after what is under way there."
        agent.may_go_on.set()
        await front.house.finished(named.json()["turn_id"])
        assert (await front.get(ANN, f"/sessions/{session}/facts")).json()["title"] == "Later"


async def test_order_with_nothing_to_do_says_so(store_url: str) -> None:
    async with open_front(store_url) as front:
        session = await front.session()
        said = {
            "redo": "nothing to bring back",
            "compress": "nothing to compress",
            "stop": "Nothing is running",
        }
        for what, told in said.items():
            assert told in (await front.post(ANN, f"/sessions/{session}/{what}")).json()["refused"]


async def test_checkpoint_is_made_by_administrators_alone(store_url: str) -> None:
    async with open_front(store_url) as front:
        path = f"/sessions/{await front.session()}/checkpoint"
        assert (await front.post(ANN, path)).status_code == 403
        assert "switched off" in (await front.post(ADA, path)).json()["refused"], (
            "an administrator is told why"
        )


async def test_stop_ends_a_turn_that_runs(store_url: str) -> None:
    async with open_front(store_url, agent=Resting()) as front:
        session = await front.session()
        resting = await front.house.say("!rest")
        await front.house.until(resting.turn_id, TurnState.RUNNING)
        stopped = (await front.post(ANN, f"/sessions/{session}/stop")).json()
        assert stopped["message"].startswith("Stopped.")
        assert (await front.house.finished(resting.turn_id)).state == "interrupted"


async def test_message_waits_for_what_runs_or_ends_it_as_its_sender_wishes(store_url: str) -> None:
    running = Running(most_waiting=1, drain_seconds=1.0)
    async with open_front(store_url, agent=Resting(), running=running) as front:
        session = await front.session()
        resting = await front.house.say("!rest")
        await front.house.until(resting.turn_id, TurnState.RUNNING)
        path = f"/sessions/{session}/messages"
        queued = (await front.post(ANN, path, text="later", busy="queue")).json()
        assert queued["waiting"] == 1
        wrong = await front.post(ANN, path, text="now", busy="shout")
        assert (wrong.status_code, wrong.json()["code"]) == (400, "invalid_input")
        full = await front.post(ANN, path, text="later, too", busy="queue")
        assert (full.status_code, full.json()["code"]) == (429, "too_many_waiting")
        assert int(full.headers["retry-after"]) > 0
        await front.post(ANN, f"/sessions/{session}/stop")
        assert (await front.house.finished(resting.turn_id)).state == "interrupted"
        await front.house.finished(queued["turn_id"])
        resting = await front.house.say("!rest")
        await front.house.until(resting.turn_id, TurnState.RUNNING)
        await front.post(ANN, path, text="now", busy="interrupt")
        assert (await front.house.finished(resting.turn_id)).state == "interrupted"


async def test_same_key_is_the_same_message_and_another_request_with_it_is_refused(store_url: str) -> None:
    async with open_front(store_url) as front:
        session, other = await front.session(), await front.session("bob")
        path = f"/sessions/{session}/messages"
        sent = [front.post(ANN, path, key="k1", text="once") for _ in range(5)]
        turns = {each.json()["turn_id"] for each in await asyncio.gather(*sent)}
        assert len(turns) == 1
        again = await front.post(ANN, path, key="k1", text="once")
        assert again.json()["turn_id"] in turns
        assert again.headers["idempotent-replayed"] == "true"
        reused = await front.post(ANN, path, key="k1", text="twice")
        assert (reused.status_code, reused.json()["code"]) == (422, "key_reused")
        of_bob = await front.post(BOB, f"/sessions/{other}/messages", key="k1", text="once")
        assert of_bob.status_code == 202, "keys are their sender's own"
        await front.house.finished(turns.pop())
        said = [each["content"] for each in await front.house.transcript()]
        assert said.count("once") == 1


async def begin(front: Front, who: str, path: str, key: str, said: dict[str, Any]) -> None:
    """A request that is claimed, and of which no more is known: the gateway died."""
    digest = repeats.request_digest("POST", f"/api/v1{path}?", msgspec.json.encode(said))
    call = KeyedCall(id=repeats.call_id(VISITORS[who].id, key), request=digest)
    assert await front.house.store.keyed_calls.claim(call, datetime.now(UTC)) is None


async def test_request_whose_outcome_nobody_knows_is_not_done_twice(store_url: str) -> None:
    async with open_front(store_url) as front:
        said = {"principal": "matrix:nobody"}
        await begin(front, ADA, "/people/revoke", "k2", said)
        cut_off = await front.post(ADA, "/people/revoke", key="k2", **said)
        assert cut_off.status_code == 409
        assert "Look whether it was done" in cut_off.json()["detail"]


async def test_message_is_taken_after_a_crash_that_came_before_it(store_url: str) -> None:
    async with open_front(store_url) as front:
        session = await front.session()
        path, said = f"/sessions/{session}/messages", {"text": "once"}
        await begin(front, ANN, path, "k3", said)
        first = (await front.post(ANN, path, key="k3", **said)).json()
        again = await front.post(ANN, path, key="k3", **said)
        assert first["repeated"] is False
        assert again.json() == first


async def test_refused_request_leaves_its_key_free(store_url: str) -> None:
    async with open_front(store_url) as front:
        session = await front.session()
        path = f"/sessions/{session}/messages"
        assert (await front.post(ANN, path, key="k4", text=" ")).status_code == 400
        assert (await front.post(ANN, path, key="k4", text="now")).status_code == 202


async def test_long_answer_is_not_kept_for_who_sends_the_request_again(store_url: str) -> None:
    async with open_front(store_url) as front:
        receipt = await front.house.say("!say " + "x" * MOST_KEPT_BYTES, "ann")
        await front.house.finished(receipt.turn_id)
        (delivery,) = await front.house.store.deliveries.of_turn(receipt.turn_id)
        path = f"/deliveries/{delivery.id}/resend"
        assert (await front.post(ANN, path, key="k5")).status_code == 200
        again = await front.post(ANN, path, key="k5")
        assert (again.status_code, again.json()["code"]) == (409, "answer_not_kept")


async def test_chats_of_the_page_are_each_visitors_own(store_url: str) -> None:
    async with open_front(store_url) as front:
        begun = (await front.post(ANN, "/chats", key="c1", text="hello", name="Plans")).json()
        same = (await front.post(ANN, "/chats", key="c1", text="hello", name="Plans")).json()
        others = (await front.post(BOB, "/chats", key="c1", text="hello", name="Plans")).json()
        assert begun["session_id"] == same["session_id"] != others["session_id"]
        await front.house.finished(begun["turn_id"])
        shown = (await front.get(ANN, f"/sessions/{begun['session_id']}")).json()
        assert [row["content"] for row in shown["transcript"]] == ["hello", "echo: hello"]
        assert (await front.get(BOB, f"/sessions/{begun['session_id']}")).status_code == 404
        done = (await front.get(ANN, f"/turns/{begun['turn_id']}")).json()
        assert [each["text"] for each in done["replies"]] == ["echo: hello"]
        path = f"/sessions/{begun['session_id']}/messages"
        taken = (await front.post(ANN, path, text="more")).json()
        await front.house.finished(taken["turn_id"])
        rows = await front.house.sessions.load_transcript(begun["session_id"])
        assert [row["content"] for row in rows][2:] == ["more", "echo: more"]


async def test_chats_that_somebody_begins_are_bounded_and_those_that_there_are_go_on(store_url: str) -> None:
    async with open_front(store_url) as front:
        begun = (await front.post(ANN, "/chats", key="c1", text="hello")).json()
        shown = await front.house.store.sessions.find(begun["session_id"])
        assert shown
        assert shown.entry.origin
        for number in range(1, MOST_CHATS):
            another = msgspec.structs.replace(shown.entry.origin, chat_id=f"{number}@somewhere")
            await front.house.sessions.get_or_create_session(another)
        refused = await front.post(ANN, "/chats", text="one more")
        assert (refused.status_code, refused.json()["code"]) == (429, "too_many_chats")
        assert 0 < int(refused.headers["retry-after"]) <= 3600
        assert (await front.post(BOB, "/chats", text="hello")).status_code == 202
        path = f"/sessions/{begun['session_id']}/messages"
        assert (await front.post(ANN, path, text="more")).status_code == 202


async def test_word_that_counts_as_somebody_elses_is_not_given_for_them(store_url: str) -> None:
    async with open_front(store_url) as front:
        session = await front.session()
        for text in ("/approve X", "/deny X", "/lift", "/pair", "/link", "/unlink"):
            refused = await front.post(ADA, f"/sessions/{session}/messages", text=text)
            assert refused.status_code == 400, text


async def test_who_has_the_agent_asked_from_the_page_does_not_decide_about_it(store_url: str) -> None:
    async with open_front(store_url) as front:
        session = await front.session()
        await front.post(ADA, f"/sessions/{session}/messages", text="please; !approve rm")

        async def asked() -> Any:
            waiting = await front.house.gateway.parts.confirmations.list(5)
            return waiting or None

        (request,) = await poll(asked)
        assert request.on_behalf_of == VISITORS[ADA].id


async def test_chat_that_only_programs_read_takes_no_message(store_url: str) -> None:
    async with open_front(store_url, notebook=Notebook("api_server", collects=True, notices=False)) as front:
        session = await front.session()
        refused = await front.post(ADA, f"/sessions/{session}/messages", text="hi")
        assert refused.status_code == 409
        assert "only a program reads there" in refused.json()["detail"]
        assert (await front.post(ADA, f"/sessions/{session}/rename", title="Report")).json()["is_over"]


async def test_order_about_a_chat_that_only_programs_read_is_carried_out_and_answered_to_the_page_alone(
    store_url: str,
) -> None:
    async with open_front(store_url, notebook=Notebook("webhook"), agent=Resting()) as front:
        session = await front.session()
        resting = await front.house.say("!rest")
        await front.house.until(resting.turn_id, TurnState.RUNNING)
        facts = await Office.of_gateway(front.house.gateway).acting_on(session)
        assert (facts["acts"], facts["writes"]) == (True, False)
        stopped = (await front.post(ADA, f"/sessions/{session}/stop")).json()
        assert stopped["message"].startswith("Stopped.")
        assert (await front.house.finished(resting.turn_id)).state == "interrupted"
        for what, body in {"rename": {"title": "Report"}, "undo": {}, "redo": {}, "reset": {}}.items():
            told = (await front.post(ADA, f"/sessions/{session}/{what}", **body)).json()
            assert told["message"], what
            assert told["refused"] is None, what
        await front.house.notebook.wait_for(1, "notice")
        said = [each.text for each in front.house.notebook.sent]
        assert said == ["echo: hello", notices.STOPPED], "what its own messages are answered"
        left = front.house.gateway.parts.store.deliveries

        async def is_empty() -> bool | None:
            return None if await left.counts() else True

        await poll(is_empty)


async def test_long_name_does_not_make_a_long_refusal(store_url: str) -> None:
    async with open_front(store_url, notebook=Notebook("webhook")) as front:
        session = await front.session(source=front.house.source("ann", chat_name="A" * 5000))
        refused = await front.post(ADA, f"/sessions/{session}/messages", text="hi")
        assert len(refused.json()["detail"]) < 200


async def test_no_name_turns_around_why_nothing_can_be_written(store_url: str) -> None:
    async with open_front(store_url, notebook=Notebook("api_server", collects=True, notices=False)) as front:
        session = await front.session(source=front.house.source("ann", chat_name="\u202egnp.exe"))
        refused = await front.post(ADA, f"/sessions/{session}/messages", text="hi")
        assert "gnp.exe" in refused.json()["detail"]
        assert "\u202e" not in refused.json()["detail"]


async def test_order_for_a_session_that_goes_on_no_longer_does_nothing(store_url: str) -> None:
    async with open_front(store_url, agent=Resting()) as front:
        session = await front.session()
        resting = await front.house.say("!rest")
        await front.house.until(resting.turn_id, TurnState.RUNNING)
        renewed = await front.house.say("/new", event_id="new")
        late = asyncio.ensure_future(front.post(ANN, f"/sessions/{session}/undo"))
        await front.house.finished(renewed.turn_id)
        told = (await late).json()
        assert told.get("refused") or told.get("status") == 409
        said = await front.house.sessions.load_transcript(session)
        assert "echo: hello" in [each["content"] for each in said]


async def test_session_that_has_ended_is_renamed_and_forgotten_without_a_word_to_its_chat(
    store_url: str,
) -> None:
    async with open_front(store_url) as front:
        session = await front.session()
        await front.house.ask("/new")
        said = len(front.house.notebook.sent)
        renamed = await front.post(ANN, f"/sessions/{session}/rename", title="Sums of May")
        assert (renamed.status_code, renamed.json()["turn_id"]) == (200, None)
        page = (await front.client.get(f"/sessions/{session}", headers={NAME: ANN})).text
        assert "Sums of May" in page
        orders = set(re.findall(rf'data-act="/api/v1/sessions/{session}/(\w+)"', page))
        assert orders == {"rename", "resume", "forget"}
        forgotten = (await front.post(ANN, f"/sessions/{session}/forget")).json()
        assert forgotten["message"].startswith("Forgotten.")
        assert (await front.post(ANN, f"/sessions/{session}/forget")).status_code == 200, "once more"
        refused = await front.post(ANN, f"/sessions/{session}/rename", title="Again")
        assert (refused.status_code, refused.json()["code"]) == (409, "session_forgotten")
        kept = await front.house.store.sessions.find(session)
        assert kept
        assert (kept.is_forgotten, kept.title) == (True, None)
        assert len(front.house.notebook.sent) == said
        assert "echo: more" in await front.house.ask("more"), "the conversation that goes on is untouched"


async def test_chat_of_the_page_that_was_forgotten_leads_to_a_new_one(store_url: str) -> None:
    async with open_front(store_url) as front:
        begun = (await front.post(ANN, "/chats", text="hello")).json()
        await front.house.finished(begun["turn_id"])
        path = f"/sessions/{begun['session_id']}"
        assert (await front.post(ANN, f"{path}/forget")).json()["session_id"] is None
        shown = (await front.client.get(path, headers={NAME: ANN})).text
        assert "Your next message starts a new one there:" in shown
        assert 'class="button main" href="/chat">' in shown


async def test_nothing_can_be_done_with_a_session_that_was_forgotten(store_url: str) -> None:
    async with open_front(store_url) as front:
        session = await front.session()
        before = f"/sessions/{session}"
        assert (await front.post(ANN, f"{before}/forget")).json()["session_id"] is None
        asked = {f"{before}/messages": {"text": "hello"}, f"{before}/rename": {"title": "Sums"}}
        asked |= {f"{before}/{order}": {} for order in ORDERS if order not in ("rename", "forget")}
        for path, said in asked.items():
            refused = await front.post(ANN, path, **said)
            assert (refused.status_code, refused.json()["code"]) == (409, "session_forgotten"), path
        refused = await front.post(ADA, f"{before}/checkpoint")
        assert (refused.status_code, refused.json()["code"]) == (409, "session_forgotten")
        assert (await front.post(ANN, f"{before}/forget")).json()["is_over"], "once more"


async def test_session_of_a_channel_that_is_gone_can_be_renamed_and_forgotten(store_url: str) -> None:
    async with open_front(store_url, notebook=Notebook("telegram")) as front:
        session = await front.session()
    async with open_front(store_url, notebook=Notebook("slack")) as front:
        page = (await front.client.get(f"/sessions/{session}", headers={NAME: ADA})).text
        assert set(re.findall(rf'data-act="/api/v1/sessions/{session}/(\w+)"', page)) == {"rename", "forget"}
        assert "/export?" in page.partition('<dialog id="actions"')[2].partition("</dialog>")[0]
        named = (await front.post(ADA, f"/sessions/{session}/rename", title="Old chat")).json()
        assert named["session_id"] == session
        assert (await front.post(VIC, f"/sessions/{session}/forget")).status_code == 403
        assert (await front.post(BOB, f"/sessions/{session}/forget")).status_code == 404
        assert (await front.post(ADA, f"/sessions/{session}/forget")).json()["is_over"]
        page = (await front.client.get(f"/sessions/{session}", headers={NAME: ADA})).text
        assert "Ended: forgotten." in page
        assert "data-act=" not in page


async def test_events_of_a_turn_come_with_ids_and_start_over_for_who_comes_back(store_url: str) -> None:
    async with open_front(store_url) as front:
        begun = (await front.post(ANN, "/chats", text="!stream 3; !tool look; !say done")).json()
        path = f"/api/v1/turns/{begun['turn_id']}/events"
        events = await _events(front, path)
        assert [name for name, _ in events][-1] == "end"
        assert events[-1][1]["replies"][0]["text"].endswith("done")
        again = await _events(front, path, {"last-event-id": "x-1"})
        assert again[0][0] == "reset"
        assert again[-1][0] == "end"


async def test_events_of_a_turn_tell_that_an_attempt_counts_no_more_and_that_something_is_to_be_allowed(
    store_url: str,
) -> None:
    agent = Resting()
    async with open_front(store_url, agent=agent) as front:
        text = "!say first; !rest; !fail retryable 1; !say second"
        begun = (await front.post(ANN, "/chats", text=text)).json()
        events = []
        async for event in _coming(front, f"/api/v1/turns/{begun['turn_id']}/events"):
            events.append(event)
            if event[0] == "text":
                agent.may_go_on.set()
        names = [name for name, _ in events]
        assert names.index("failed") < names.index("restarted") < names.index("end")
        last = names.index("restarted")
        said = "".join(told["text"] for name, told in events[last:] if name == "text")
        assert events[-1][1]["replies"][0]["text"] == said


async def _events(front: Front, path: str, more: dict[str, str] | None = None) -> list[tuple[str, Any]]:
    return [each async for each in _coming(front, path, more)]


async def _coming(
    front: Front, path: str, more: dict[str, str] | None = None
) -> AsyncGenerator[tuple[str, Any], None]:
    """The events as they come, until the end."""
    async with front.client.stream("GET", path, headers={NAME: ANN} | (more or {})) as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        fields: dict[str, str] = {}
        async for line in answer.aiter_lines():
            if line and not line.startswith(":"):
                name, value = line.split(": ", 1)
                fields[name] = value
            elif not line and "event" in fields:
                assert fields["event"] == "reset" or fields["id"]
                yield fields["event"], json.loads(fields["data"])
                fields = {}


def test_every_row_that_changes_something_takes_an_idempotency_key() -> None:
    changing = [row for row in office_api.OPERATIONS if row.method not in LOOKING and row.form is Form.JSON]
    assert len(changing) > len(ORDERS)
    # A file alone changes nothing that anybody sees: the message that names it is the one that happens once.
    assert [row.name for row in changing if not row.is_keyed] == ["bring_file"]
