"""The pages on what works and what does not, over real HTTP."""

import re
from collections.abc import AsyncIterator

import httpx
import pytest

from frontdesk.app.office import Office
from frontdesk.app.office.counters import COUNTED
from frontdesk.model import lanes
from frontdesk.model.deliveries import Delivery, DeliveryState, NotSent
from frontdesk.model.lists import ListedAudit
from frontdesk.model.turns import Ending, TurnState
from frontdesk.web.site import overview
from tests import siting
from tests.flow.harness import House, Notebook, Resting, open_house, poll
from tests.siting import ServedSite

MEMORY = "sqlite:///:memory:"
HOSTILE = "</q><script>alert(1)</script>\u202e\u200b452 mailbox full"
INERT = "&lt;/q&gt;&lt;script&gt;alert(1)&lt;/script&gt;"


class LostAnswers(Notebook):
    """A channel that loses what it is told to."""

    def lose_one(self, why: str = HOSTILE) -> None:
        self.outcomes.append(NotSent(why=why, hopeless=True))


@pytest.fixture
async def house() -> AsyncIterator[House]:
    agent = Resting()
    async with open_house(MEMORY, notebook=LostAnswers(), agent=agent) as opened:
        yield opened
        agent.may_go_on.set()


@pytest.fixture
async def served(house: House) -> AsyncIterator[ServedSite]:
    async with siting.serving_site(house) as opened:
        yield opened


@pytest.fixture
async def ops(served: ServedSite) -> AsyncIterator[httpx.AsyncClient]:
    async with served.visiting(siting.OPS) as client:
        yield client


async def lose_answer(house: House, user: str = "ann", **fields: str) -> str:
    """An answer that did not arrive; its id."""
    assert isinstance(house.notebook, LostAnswers)
    house.notebook.lose_one()
    await house.say("hello", user, source=house.source(user, **fields))
    return (await house.troubled())[0].id


async def page(client: httpx.AsyncClient, path: str) -> str:
    answer = await client.get(path)
    assert answer.status_code == 200, answer.text
    return answer.text


async def test_overview_is_quiet_while_everything_works(ops: httpx.AsyncClient) -> None:
    shown = await page(ops, "/overview")
    assert "Everything works." in shown
    assert "note bad" not in shown
    assert 'data-events="/api/v1/events"' in shown


async def test_overview_says_first_what_did_not_arrive_and_where_to_look(
    house: House, ops: httpx.AsyncClient
) -> None:
    await lose_answer(house)
    shown = await page(ops, "/overview")
    assert "One thing needs you" in shown
    assert "matrix: one answer did not arrive" in shown
    assert 'href="/deliveries"' in shown
    assert "Everything works." not in shown


async def test_pages_agree_on_how_many_there_are_and_say_where_they_have_not_counted_on(
    house: House, ops: httpx.AsyncClient
) -> None:
    now, place = house.gateway.parts.clock.now(), house.source("ann")
    lane = lanes.chat_lane(place)
    letters = [
        Delivery(id=f"d{each}", state=DeliveryState.DEAD, lane=lane, to=place, text="x", created_at=now)
        for each in range(COUNTED + 1)
    ]
    await house.store.deliveries.add(letters[:130])
    shown = await page(ops, "/deliveries")
    assert "130 answers did not arrive." in shown
    assert "Not arrived 130" in shown
    assert "matrix: 130 answers did not arrive" in await page(ops, "/overview")
    await house.store.deliveries.add(letters[130:])
    shown = await page(ops, "/deliveries")
    assert "1000+ answers did not arrive." in shown
    assert "Not arrived 1000+" in shown
    assert "matrix: 1000+ answers did not arrive" in await page(ops, "/overview")


async def test_overview_counts_a_waiting_request_among_what_needs_whoever_may_decide(
    house: House, served: ServedSite, ops: httpx.AsyncClient
) -> None:
    receipt = await house.say("!approve remove_file Remove a.txt?")
    await house.until(receipt.turn_id, TurnState.WAITING)
    shown = await page(ops, "/overview")
    assert "One thing needs you" in shown
    assert "One request waits for your decision" in shown
    assert re.search(r'<a class="button push" href="/approvals">Decide', shown)
    assert 'Without one it is denied in <time datetime="2' in shown
    assert '<b class="big">1</b> waits for an approval' in shown
    for denial in ("Everything works.", "Nothing waits", "somebody else’s decision"):
        assert denial not in shown
    assert "Nothing waits" not in await page(ops, "/turns")
    async with served.visiting(siting.EYE) as eye:
        seen = await page(eye, "/overview")
        assert "Everything works." in seen
        assert "One request waits for somebody else’s decision." in seen
        assert "your decision" not in seen
    told = (await ops.get("/api/v1/health")).json()["requests"]
    assert (told["waiting"], told["yours"]) == (1, 1)


async def test_late_answer_is_late_on_every_page_and_in_one_list_alone(
    house: House, ops: httpx.AsyncClient
) -> None:
    house.notebook.outcomes = [NotSent(why="busy", retry_after_seconds=3600)]
    await house.say("hello")

    async def look() -> str | None:
        found = await house.store.deliveries.late(1)
        return found[0].id if found else None

    late = await poll(look)
    overview_page, listed = await page(ops, "/overview"), await page(ops, "/deliveries")
    assert "One thing needs you" in overview_page
    assert "matrix: one answer is late" in overview_page
    assert late in overview_page
    assert late in listed
    for shown in (overview_page, listed):
        assert "Every answer has arrived" not in shown
    assert "One answer is late." in listed
    assert re.findall(r">(Late 1|On their way[^<]*)</a>", listed) == ["Late 1", "On their way"]
    assert late not in await page(ops, "/deliveries?show=waiting")
    assert "Until then nothing can be done with it here." in listed
    assert re.search(r"next try <time [^>]*>in \d+", listed)
    for verb in ("resend", "discard"):
        told = (await ops.post(f"/api/v1/deliveries/{late}/{verb}", json={})).json()
        assert told["refused"].startswith(f"It is tried again by itself at {told['next_try_at']}")


@pytest.mark.parametrize("path", ["/overview", "/deliveries"])
async def test_hostile_reasons_and_names_are_shown_as_text(
    house: House, ops: httpx.AsyncClient, path: str
) -> None:
    await lose_answer(house, user_name="<img src=x onerror=alert(2)>\u202e")
    shown = await page(ops, path)
    assert INERT in shown
    assert "<script>alert" not in shown
    assert "<img" not in shown


async def test_health_is_the_same_as_json(house: House, ops: httpx.AsyncClient) -> None:
    await lose_answer(house)
    health = (await ops.get("/api/v1/health")).raise_for_status().json()
    (late,) = health["deliveries"]
    assert (late["platform"], late["is_lost"], late["count"]) == ("matrix", True, 1)
    assert health["running"]
    (channel,) = health["channels"]
    assert channel["platform"] == "matrix"
    assert channel["last_event_at"]
    (node,) = health["nodes"]
    assert (node["number"], node["state"]) == (health["node"], "works")
    assert health["store"]["bytes"] > 0


async def test_silent_node_and_channel_that_fails_are_told_with_what_that_means(house: House) -> None:
    health = await Office.of_gateway(house.gateway).health()
    (node,) = health["nodes"]
    (channel,) = health["channels"]
    health["nodes"].append({**node, "number": 7, "name": "fd-3", "state": "silent", "leases": 2})
    health["channels"] = [{**channel, "trouble": "the token was refused"}]
    fails, silent = overview.troubles_of(health)
    assert (fails.what, fails.why, fails.is_bad) == (
        "matrix takes no messages",
        "the token was refused",
        True,
    )
    assert silent.what == "Node 7 (fd-3) is silent"
    assert "2 lanes that it holds go on at another node" in silent.so


async def test_store_that_fails_is_said_and_nothing_else_is_asked_of_it(
    house: House, ops: httpx.AsyncClient
) -> None:
    await house.store.close()
    shown = await page(ops, "/overview")
    assert "The gateway does not work" in shown
    assert "The store does not answer." in shown
    for unknown in ("wait to be run", "Every answer has arrived", "Everything works."):
        assert unknown not in shown


async def test_resent_answer_arrives_and_is_listed_no_more(house: House, ops: httpx.AsyncClient) -> None:
    lost = await lose_answer(house)
    assert lost in await page(ops, "/deliveries")
    answer = await ops.post(f"/api/v1/deliveries/{lost}/resend", json={})
    assert answer.json()["resent"]
    assert await house.notebook.wait_for(1) == ["echo: hello"]
    assert lost not in await page(ops, "/deliveries")


async def test_discarded_answer_is_given_up_by_name_and_kept_in_its_list(
    house: House, ops: httpx.AsyncClient
) -> None:
    lost = await lose_answer(house)
    assert (await ops.post(f"/api/v1/deliveries/{lost}/discard", json={})).json()["discarded"]
    assert lost not in await page(ops, "/deliveries")
    assert lost in await page(ops, "/deliveries?show=discarded")
    assert "Everything works." in await page(ops, "/overview")
    again = (await ops.post(f"/api/v1/deliveries/{lost}/resend", json={})).json()
    assert not again["resent"]
    assert again["refused"] == "It is discarded: only what is dead or unknown is sent again or given up."
    (logged,) = (await house.store.lists.audit(ListedAudit(kind="delivery_discarded"))).items
    assert logged.readable
    assert logged.readable.actor == siting.OPS.id


async def test_document_says_what_is_in_these_answers(house: House, ops: httpx.AsyncClient) -> None:
    lost = await lose_answer(house)
    key = await house.sessions.session_key_for(house.source("ann"))
    session = await house.sessions.peek_session_id(key)
    document = (await ops.get("/openapi.json")).json()
    for method, path, named in (
        ("get", "/sessions/{session_id}", session),
        ("get", "/status", ""),
        ("post", "/deliveries/{delivery_id}/discard", lost),
        ("post", "/deliveries/{delivery_id}/resend", lost),
    ):
        told = document["paths"][f"/api/v1{path}"][method]["responses"]["200"]["content"]["application/json"]
        schema = document["components"]["schemas"][told["schema"]["$ref"].rpartition("/")[2]]
        address = f"/api/v1{re.sub('{.*}', named or '', path)}"
        answer = await (ops.get(address) if method == "get" else ops.post(address, json={}))
        assert set(schema["required"]) == set(answer.json()), path


async def test_whoever_only_looks_has_no_buttons_and_changes_nothing(
    house: House, served: ServedSite
) -> None:
    lost = await lose_answer(house)
    async with served.visiting(siting.EYE) as eye:
        assert "data-act" not in await page(eye, "/deliveries")
        for verb in ("resend", "discard"):
            assert (await eye.post(f"/api/v1/deliveries/{lost}/{verb}", json={})).status_code == 403


async def test_session_in_trouble_leads_to_where_it_is_mended(house: House, ops: httpx.AsyncClient) -> None:
    await lose_answer(house)
    (lost,) = re.findall(r'data-row id="[^"]*" href="([^"]*)"', await page(ops, "/sessions?state=trouble"))
    shown = await page(ops, lost)
    assert "did not arrive, or perhaps not" in shown
    assert '<a class="button push" href="/deliveries">Look</a>' in shown


async def test_person_sees_their_own_deliveries_and_turns_alone(house: House, served: ServedSite) -> None:
    lost = await lose_answer(house, "ann")
    delivery = await house.store.deliveries.find(lost)
    assert delivery
    assert delivery.turn_id
    turn = delivery.turn_id
    async with served.visiting(siting.ANN) as ann, served.visiting(siting.BEN) as ben:
        for path, named in (("/deliveries", lost), ("/turns?show=recent", turn)):
            assert named in await page(ann, path)
            assert named not in await page(ben, path)
            assert named in (await ann.get(f"/api/v1{path}")).raise_for_status().text
            assert named not in (await ben.get(f"/api/v1{path}")).raise_for_status().text
        assert (await ben.get("/api/v1/deliveries/counts")).json()["dead"] == 0
        assert (await ben.post(f"/api/v1/deliveries/{lost}/resend", json={})).status_code == 404
        assert (await ann.post(f"/api/v1/deliveries/{lost}/discard", json={})).status_code == 403
        for path in ("/overview", "/api/v1/health"):
            assert (await ann.get(path)).status_code == 403
        assert (await ann.post(f"/api/v1/deliveries/{lost}/resend", json={})).json()["resent"]
    assert await house.notebook.wait_for(1) == ["echo: hello"]


async def test_lists_are_read_page_by_page_without_gap_or_repeat(
    house: House, ops: httpx.AsyncClient
) -> None:
    asked = [(await house.say("hello", f"user{number}")).turn_id for number in range(5)]
    for turn_id in asked:
        await house.finished(turn_id)
    seen: list[str] = []
    after: dict[str, str] = {}
    while True:
        found = (await ops.get("/api/v1/turns", params={"limit": "2"} | after)).raise_for_status().json()
        seen += [each["id"] for each in found["items"]]
        if found["next"] is None:
            break
        after = {"after": found["next"]}
    assert seen == asked[::-1]
    assert (await ops.get("/api/v1/turns?after=nonsense")).status_code == 400


async def test_cursor_of_a_person_tells_nothing_and_is_theirs(house: House, served: ServedSite) -> None:
    for _ in range(2):
        for user in ("ann", "ben"):
            await lose_answer(house, user)
    async with served.visiting(siting.ANN) as ann, served.visiting(siting.BEN) as ben:
        for path in ("/api/v1/turns?limit=1", "/api/v1/deliveries?limit=1"):
            pages = [(await ann.get(path)).json() for _ in range(2)]
            first, again = (each["next"] for each in pages)
            assert first != again, "not even whether there are more by now"
            assert not re.fullmatch(r"\d+", first)
            rest = (await ann.get(path, params={"limit": "1", "after": first})).json()
            assert len(rest["items"]) == 1
            assert rest["items"] != pages[0]["items"]
            for client, after in ((ben, first), (ann, "1"), (ann, first[:-2])):
                wrong = await client.get(path, params={"limit": "1", "after": after})
                assert (wrong.status_code, wrong.json()["code"]) == (400, "invalid_input")


async def test_turn_that_waits_runs_or_was_set_aside_is_told_with_its_reason(
    house: House, ops: httpx.AsyncClient
) -> None:
    """Each list has its own, and an empty one says what would stand there."""
    assert "There was no turn yet" in await page(ops, "/turns")
    receipt = await house.say("!rest")
    await house.until(receipt.turn_id, TurnState.RUNNING)
    later = await house.say("and then?")
    assert receipt.turn_id in await page(ops, "/turns?show=running")
    assert later.turn_id in await page(ops, "/turns?show=waiting")
    counts = (await ops.get("/api/v1/turns/counts")).json()
    assert (counts["running"], counts["queued"], counts["set_aside"]) == (1, 1, 0)
    assert counts["oldest_at"]
    (stop,) = re.findall(r'data-act="([^"]+/stop)"', await page(ops, "/turns?show=running"))
    assert (await ops.post(stop, json={})).is_success
    await house.until(receipt.turn_id, TurnState.INTERRUPTED)


async def set_aside(house: House, turn_id: str) -> None:
    turn = await house.until(turn_id, TurnState.RUNNING)
    ending = Ending(state=TurnState.SET_ASIDE, error="it was begun too often")
    assert await house.store.turns.break_off(turn, ending, house.gateway.parts.clock.now())


async def test_turn_that_was_set_aside_is_tried_again_or_given_up_and_its_sender_is_told(
    house: House, served: ServedSite, ops: httpx.AsyncClient
) -> None:
    turn = (await house.say("!rest")).turn_id
    await set_aside(house, turn)
    shown = await page(ops, "/turns?show=set_aside")
    retry, give_up = re.findall(r'data-act="([^"]+)"', shown)
    assert "Give it up?" in shown
    async with served.visiting(siting.EYE) as eye:
        looked = await page(eye, "/turns?show=set_aside")
        assert "Administrators try it again" in looked
        assert "data-act" not in looked
        assert (await eye.post(retry, json={})).status_code == httpx.codes.FORBIDDEN
    assert (await ops.post(retry, json={})).json()["done"]
    assert not (await ops.post(give_up, json={})).json()["done"]
    await set_aside(house, turn)
    assert (await ops.post(give_up, json={})).json() == {"id": turn, "done": True, "state": "failed"}
    again, given_up = await house.notebook.wait_for(2, "notice")
    assert again == "Your message is tried again: !rest"
    assert given_up.endswith("and will not be answered: !rest")
    assert "given up by token:ops" in await page(ops, "/turns?show=recent")
    assert not (await ops.post(retry, json={})).json()["done"]
    unknown = await ops.post("/api/v1/turns/nothing/retry", json={})
    assert unknown.status_code == httpx.codes.NOT_FOUND
    rows = (await ops.get("/api/v1/audit")).json()["items"]
    assert [(each["kind"], each["actor"]) for each in rows] == [
        ("turn_given_up", "token:ops"),
        ("turn_retried", "token:ops"),
    ]


async def spend(house: House, user: str = "ann", tokens: str = "1000 200 0.25") -> None:
    """A turn that costs something, with a tool that fails and one that does not."""
    await house.ask(f"!tokens {tokens}; !tool look; !toolerror look; !say done", user)


async def test_usage_is_told_by_day_platform_model_and_profile_with_the_curve(
    house: House, ops: httpx.AsyncClient
) -> None:
    assert "Nothing was used yet" in await page(ops, "/usage")
    await spend(house)
    usage = (await ops.get("/api/v1/usage?days=7")).raise_for_status().json()
    assert (usage["total"]["cost_usd"], usage["total"]["tokens"], usage["total"]["turns"]) == (0.25, 1200, 1)
    assert len(usage["days"]) == 7
    assert sum(each["cost_usd"] for each in usage["days"]) == 0.25
    assert [each["name"] for each in usage["platforms"]] == ["matrix"]
    assert [each["name"] for each in usage["profiles"]] == ["default"]
    curve = (await ops.get("/api/v1/usage/marathon")).raise_for_status().json()
    assert (curve["warn_at"], curve["limit_at"]) == (170, 200)
    (point,) = curve["points"]
    assert (point["message"], point["tool_error_rate"], point["cost_per_turn"]) == (1, 0.5, 0.25)
    shown = await page(ops, "/usage")
    assert "$0.250" in shown
    assert 'data-plot="/api/v1/usage/marathon?days=14"' in shown
    assert "Warned at message 170, rotated at 200." in shown
    assert (await ops.get("/api/v1/usage?days=0")).status_code == 400


async def test_person_sees_their_own_usage_alone(house: House, served: ServedSite) -> None:
    await spend(house, "ann", "1000 200 0.25")
    await spend(house, "ben", "10 20 8.5")
    async with served.visiting(siting.ANN) as ann:
        usage = (await ann.get("/api/v1/usage")).raise_for_status().json()
        assert (usage["total"]["cost_usd"], usage["total"]["tokens"]) == (0.25, 1200)
        assert usage["days"] == []
        unknown = [usage["total"][name] for name in ("turns", "failed", "tools", "failures")]
        assert unknown == [None] * 4, "their sessions do not tell: not that there were none"
        shown = await page(ann, "/usage")
        assert "$0.250" in shown
        assert "$8.50" not in shown
        assert "marathon" not in shown
        assert (await ann.get("/api/v1/usage/marathon")).status_code == 403
