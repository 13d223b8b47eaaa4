"""Whatever is killed whenever: what was acknowledged is answered once, in order, or visibly given up."""

import asyncio
import os
import resource
import uuid
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from frontdesk.testing import crashes, postgres
from tests import counts, servers
from tests.acceptance import lab, lab_checks
from tests.acceptance.lab import Lab, Plan
from tests.acceptance.lab_checks import Arrived, Asked, Delivery, Evidence, Facts, Row, Run, Taking, Turn

MOST_SHOWN = 10
# Where the time that passes is what counts, and not how much is said in it.
LEISURELY_SECONDS = counts.count(5, 1) / 10

# Processes are started and killed again and again, each of which takes its time on a busy machine.
pytestmark = [pytest.mark.prove, pytest.mark.timeout(counts.count(600, 7200))]


def report(tell: counts.Tell, what: str, told: Counter[str]) -> None:
    for word, number in told.items():
        tell(f"{what}: {word}", number)


async def check(lab: Lab, tell: counts.Tell, what: str) -> Evidence:
    evidence = await lab.settle()
    report(tell, what, lab.told)
    found = lab_checks.violations(evidence)
    assert not found, "\n".join([f"{len(found)} violations", *found[:MOST_SHOWN], lab.log()])
    return evidence


async def more_asked(laboratory: Lab) -> None:
    """Until as many more messages are acknowledged as there are chats."""
    enough = len(laboratory.asked) + laboratory.plan.chats
    await laboratory.until(lambda: len(laboratory.asked) >= enough)


async def more_refused(laboratory: Lab) -> None:
    """Until as many more requests are refused as there are chats."""
    enough = laboratory.told["requests refused"] + laboratory.plan.chats
    await laboratory.until(lambda: laboratory.told["requests refused"] >= enough)


@pytest.fixture(scope="module")
def server() -> Iterator[postgres.Server]:
    """A server of these tests' own, which some of them kill."""
    with servers.running(max_connections="200") as server:
        yield server


@pytest.fixture
def schema_url(server: postgres.Server) -> str:
    return f"{server.url}?schema=t{uuid.uuid4().hex}"


@pytest.fixture
def sqlite_url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/state.db"


async def test_nothing_is_lost_or_doubled_when_a_node_on_sqlite_is_killed(
    tmp_path: Path, sqlite_url: str, tell: counts.Tell
) -> None:
    async with lab.laboratory(tmp_path, sqlite_url, Plan()) as laboratory:
        await laboratory.load(until=laboratory.kill_nodes(counts.count(4, 300)))
        await check(laboratory, tell, "SQLite, one node")


async def test_unknown_sends_are_marked_and_not_repeated_where_the_receiver_knows_nothing_again(
    tmp_path: Path, sqlite_url: str, tell: counts.Tell
) -> None:
    async with lab.laboratory(tmp_path, sqlite_url, Plan(idempotent=False)) as laboratory:
        await laboratory.load(until=laboratory.kill_nodes(counts.count(2, 200)))
        await check(laboratory, tell, "SQLite, a receiver that cannot deduplicate")


async def test_program_as_installed_survives_kills(
    tmp_path: Path, sqlite_url: str, tell: counts.Tell
) -> None:
    async with lab.laboratory(tmp_path, sqlite_url, Plan(program=True)) as laboratory:
        await laboratory.load(until=laboratory.kill_nodes(counts.count(2, 100), steps=False))
        await check(laboratory, tell, "SQLite, `frontdesk run`")


async def test_nothing_is_lost_or_doubled_when_nodes_on_postgres_are_killed(
    tmp_path: Path, schema_url: str, tell: counts.Tell
) -> None:
    async with lab.laboratory(tmp_path, schema_url, Plan(nodes=3)) as laboratory:
        await laboratory.load(until=laboratory.kill_nodes(counts.count(3, 300)))
        await check(laboratory, tell, "PostgreSQL, three nodes")


async def test_order_holds_under_load_over_three_nodes(
    tmp_path: Path, schema_url: str, tell: counts.Tell
) -> None:
    chats = counts.count(10, 200)
    messages = counts.count(150, 100_000) // chats
    plan = Plan(nodes=3, chats=chats, messages=messages, trouble=0.01, repeats=0.05, pause_seconds=0.0)
    async with lab.laboratory(tmp_path, schema_url, plan) as laboratory:
        killer = asyncio.create_task(laboratory.kill_nodes(10**9, steps=False, rest_seconds=3.0))
        await laboratory.load()
        killer.cancel()
        await asyncio.wait({killer})
        evidence = await check(laboratory, tell, "PostgreSQL, three nodes under load")
    assert len(evidence.asked) >= chats * messages


async def test_nodes_go_on_by_themselves_after_postgres_was_away(
    tmp_path: Path, server: postgres.Server, schema_url: str, tell: counts.Tell
) -> None:
    async def kill_server(laboratory: Lab) -> None:
        for node in laboratory.nodes:
            await node.life()
        for _ in range(counts.count(2, 50)):
            await more_asked(laboratory)
            await asyncio.to_thread(server.kill)
            await asyncio.to_thread(server.start)
            laboratory.told["servers killed"] += 1

    plan = Plan(nodes=3, slow_seconds=2.0)
    async with lab.laboratory(tmp_path, schema_url, plan) as laboratory:
        await laboratory.load(until=kill_server(laboratory))
        await check(laboratory, tell, "PostgreSQL, server killed")
        assert all(node.deaths == {0: 1} for node in laboratory.nodes)


async def test_node_goes_on_by_itself_after_the_disk_was_full(
    tmp_path: Path, sqlite_url: str, tell: counts.Tell
) -> None:
    """A limit on the size of files stands for the full disk: what is written beyond it fails."""
    if not hasattr(resource, "prlimit"):
        pytest.skip("only Linux can limit the files of another process")

    async def fill_disk(laboratory: Lab) -> None:
        life = await laboratory.nodes[0].life()
        for number in range(counts.count(2, 50)):
            _, most = resource.prlimit(life.process.pid, resource.RLIMIT_FSIZE)
            resource.prlimit(life.process.pid, resource.RLIMIT_FSIZE, (os.sysconf("SC_PAGE_SIZE"), most))
            # The others may all wait for answers, which nobody gets now.
            insisting = asyncio.create_task(laboratory.ask("insisting", number, "hello", "echo: hello"))
            await more_refused(laboratory)
            resource.prlimit(life.process.pid, resource.RLIMIT_FSIZE, (most, most))
            await insisting
            await more_asked(laboratory)
            laboratory.told["full disks"] += 1

    async with lab.laboratory(tmp_path, sqlite_url, Plan()) as laboratory:
        await laboratory.load(until=fill_disk(laboratory))
        await check(laboratory, tell, "SQLite, disk full")
        assert laboratory.nodes[0].deaths == {0: 1}


@pytest.mark.parametrize(("lease_seconds", "reduced", "full"), [(3.0, 1, 90), (30.0, 0, 10)])
async def test_frozen_nodes_keep_nobody_waiting_and_begin_nothing_that_is_over(
    tmp_path: Path,
    schema_url: str,
    lease_seconds: float,
    reduced: int,
    full: int,
    tell: counts.Tell,
) -> None:
    freezes = counts.count(reduced, full)
    if not freezes:
        pytest.skip("half a minute for each: `make prove` does it")
    plan = Plan(nodes=3, lease_seconds=lease_seconds, slow_seconds=0.5, pause_seconds=0.5, trouble=0)
    async with lab.laboratory(tmp_path, schema_url, plan) as laboratory:
        for node in laboratory.nodes:
            await node.life()
        await laboratory.load(until=laboratory.freeze_nodes(freezes))
        await check(laboratory, tell, f"PostgreSQL, frozen nodes, leases of {lease_seconds:g} s")
        assert laboratory.told["freezes"] == freezes
        assert laboratory.told["stale agent starts"] == 0


@pytest.mark.parametrize("nodes", [1, 3])
async def test_nothing_stands_still_when_clocks_are_turned(
    tmp_path: Path, request: pytest.FixtureRequest, nodes: int, tell: counts.Tell
) -> None:
    """By hours: whatever waits for a clock to catch up would never come to its end here."""
    if not lab.FAKETIME:
        pytest.skip("there is no libfaketime on this machine; `make clocks` installs it, or says how")
    url = request.getfixturevalue("sqlite_url" if nodes == 1 else "schema_url")
    plan = Plan(nodes=nodes, clocks=True, slow_seconds=0.5, pause_seconds=LEISURELY_SECONDS)
    async with lab.laboratory(tmp_path, url, plan) as laboratory:
        await laboratory.load(until=laboratory.turn_clocks(counts.count(2, 100)))
        await check(laboratory, tell, f"Clocks turned, {nodes} nodes")


@pytest.mark.parametrize("nodes", [1, 3][: counts.count(1, 2)])
async def test_announced_stop_that_ends_in_a_kill_is_no_crash(
    tmp_path: Path, request: pytest.FixtureRequest, nodes: int, tell: counts.Tell
) -> None:
    """One node is `frontdesk run` as installed. Every fourth turn takes longer than the time to stop."""
    url = request.getfixturevalue("sqlite_url" if nodes == 1 else "schema_url")
    # So many chats that one has a slow turn at whichever node is killed.
    plan = Plan(
        nodes=nodes,
        chats=12,
        program=nodes == 1,
        slow_seconds=6.0,
        drain_seconds=5.0,
        pause_seconds=LEISURELY_SECONDS,
        trouble=0,
    )
    async with lab.laboratory(tmp_path, url, plan) as laboratory:
        await laboratory.load(until=laboratory.kill_stopping_nodes(counts.count(2, 100)))
        evidence = await check(laboratory, tell, f"SIGTERM, then SIGKILL, {nodes} nodes")
    assert lab_checks.blamed(evidence) == []
    assert laboratory.told["turns set aside"] == 0
    assert laboratory.told["attempts excused"] > 0


@pytest.mark.parametrize("nodes", [3, 1][: counts.count(1, 2)])
async def test_turn_that_kills_the_process_is_set_aside_alone(
    tmp_path: Path, request: pytest.FixtureRequest, nodes: int, tell: counts.Tell
) -> None:
    url = request.getfixturevalue("sqlite_url" if nodes == 1 else "schema_url")
    plan = Plan(nodes=nodes, messages=8, slow_seconds=0.7, pause_seconds=LEISURELY_SECONDS, trouble=0)

    async def poison(laboratory: Lab) -> None:
        await laboratory.ask("poison", 0, "hello", "echo: hello")
        for chat in ("poison", "poison2"):
            await laboratory.ask(chat, 1, "!sleep 0.5; !exit", None)
        await laboratory.ask("poison", 2, "and now?", "echo: and now?")

    async with lab.laboratory(tmp_path, url, plan) as laboratory:
        await laboratory.load(until=poison(laboratory))
        evidence = await check(laboratory, tell, f"A turn that kills, {nodes} nodes")
    aside = {turn.event_id for turn in evidence.facts.turns if turn.state == "set_aside"}
    assert aside == {"poison-1", "poison2-1"}
    told = [each.text for each in evidence.arrived if each.event_id in aside and each.final]
    assert len(told) == 2
    assert all("could not be answered" in text for text in told)


# The laboratory's own instruments.


def healthy() -> dict[str, Any]:
    """Evidence in which all is well: two messages of a chat, the second one answered with a tool."""
    calls = [{"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}]
    return {
        "asked": [
            Asked(chat="a", number=number, event_id=f"a-{number}", turn_id=f"t{number}", answer=f"{number}!")
            for number in (0, 1)
        ],
        "arrived": [
            Arrived(
                delivery_id=f"d{number}",
                chat="a",
                event_id=f"a-{number}",
                kind="reply",
                text=f"{number}!",
                final=True,
            )
            for number in (0, 1)
        ],
        "turns": [Turn(number, f"t{number}", "done", "k", f"a-{number}", 1, 0) for number in (0, 1)],
        "deliveries": [Delivery(f"d{number}", "sent", "reply", f"t{number}", True) for number in (0, 1)],
        "rows": [
            Row("k", "user", "t0", {}),
            Row("k", "assistant", "t0", {}),
            Row("k", "user", "t1", {}),
            Row("k", "assistant", "t1", {"tool_calls": calls}),
            Row("k", "tool", "t1", {"tool_call_id": "c1"}),
            Row("k", "assistant", "t1", {}),
        ],
        "runs": [
            Run(key="k", turn=f"t{number}", node="n", begin=number, end=number + 0.5) for number in (0, 1)
        ],
        "takings": [],
        "busy_lanes": [],
        "open_calls": [],
    }


def judged(idempotent: bool = True, **changed: Any) -> list[str]:
    found = healthy() | changed
    facts = Facts(**{name: found[name] for name in Facts.__struct_fields__})
    rest = {name: found[name] for name in ("asked", "arrived", "runs", "takings")}
    return lab_checks.violations(Evidence(facts=facts, idempotent=idempotent, **rest))


def test_checker_finds_nothing_where_all_is_well() -> None:
    assert judged() == []
    assert judged(idempotent=False) == []


def swapped(what: str) -> list[Any]:
    return list(reversed(healthy()[what]))


WRONGS: dict[str, tuple[dict[str, Any], str]] = {
    "lost message": ({"turns": healthy()["turns"][:1]}, "a-1 was acknowledged"),
    "unfinished turn": (
        {"turns": [replace(each, state="running") for each in healthy()["turns"]]},
        "is running",
    ),
    "turn from nowhere": ({"asked": healthy()["asked"][:1]}, "nobody asked a-1"),
    "set aside early": (
        {"turns": [replace(each, state="set_aside", attempts=2) for each in healthy()["turns"]]},
        "set aside after 1 attempts",
    ),
    "answer not written": ({"deliveries": healthy()["deliveries"][:1]}, "a-1 has the answers []"),
    "two answers written": (
        {"deliveries": [*healthy()["deliveries"], Delivery("d2", "sent", "reply", "t1", True)]},
        "a-1 has the answers",
    ),
    "answer not arrived": ({"arrived": healthy()["arrived"][:1]}, "which never arrived"),
    "wrong answer": ({"arrived": [replace(each, text="?") for each in healthy()["arrived"]]}, "not '0!'"),
    "answered under two ids": (
        {"arrived": [*healthy()["arrived"], replace(healthy()["arrived"][1], delivery_id="d2")]},
        "answered 2 times",
    ),
    "answers out of order": ({"arrived": swapped("arrived")}, "came in the order [1, 0]"),
    "transcript out of order": ({"rows": swapped("rows")}, "stand as"),
    "message twice in the transcript": (
        {"rows": [healthy()["rows"][0], *healthy()["rows"]]},
        "stand as ['t0', 't0', 't1']",
    ),
    "answer missing in the transcript": ({"rows": healthy()["rows"][:-1]}, "the answers of k"),
    "orphaned tool call": (
        {"rows": [row for row in healthy()["rows"] if row.role != "tool"]},
        "tool calls and their results differ",
    ),
    "two turns at once": ({"runs": [replace(each, end=9.0) for each in healthy()["runs"]]}, "two at once"),
    "agent begun with what is over": (
        {"takings": [Taking(turn="t1", attempt=1, at=0.9)]},
        "a stale start, 0.100 s after it was over",
    ),
    "agent goes on with what is over": (
        {
            "takings": [Taking(turn="t1", attempt=1, at=1.1)],
            "runs": [replace(each, steps=(each.begin + 0.2, each.begin + 0.3)) for each in healthy()["runs"]],
        },
        "stale steps of",
    ),
    "held lane": ({"busy_lanes": ["turn:k"]}, "turn:k is still held"),
    "open calls": ({"open_calls": ["s"]}, "open tool calls"),
    "unsent": (
        {"deliveries": [replace(each, state="pending") for each in healthy()["deliveries"]]},
        "was never settled",
    ),
}


@pytest.mark.parametrize("name", WRONGS)
def test_checker_finds_what_is_wrong(name: str) -> None:
    changed, complaint = WRONGS[name]
    assert any(complaint in found for found in judged(**changed))


def test_checker_finds_attempts_that_were_counted() -> None:
    found = healthy()
    evidence = Evidence(
        facts=Facts(**{name: found[name] for name in Facts.__struct_fields__}),
        **{name: found[name] for name in ("asked", "arrived", "runs", "takings")},
    )
    assert lab_checks.blamed(evidence) == []
    twice = replace(evidence.facts, turns=[replace(each, attempts=2) for each in evidence.facts.turns])
    assert len(lab_checks.blamed(replace(evidence, facts=twice))) == 2
    excused = replace(twice, turns=[replace(each, put_backs=1) for each in twice.turns])
    assert lab_checks.blamed(replace(evidence, facts=excused)) == []


def test_checker_forgives_what_an_agent_did_before_it_was_over() -> None:
    assert judged(takings=[Taking(turn="t1", attempt=1, at=1.1), Taking(turn="t1", attempt=2, at=0)]) == []


def test_checker_forgives_repeated_callbacks_only_to_receivers_that_deduplicate() -> None:
    twice = [*healthy()["arrived"], healthy()["arrived"][1]]
    assert judged(arrived=twice) == []
    assert "d1 arrived 2 times" in judged(arrived=twice, idempotent=False)


def test_checker_forgives_a_missing_callback_only_where_its_outcome_is_marked_unknown() -> None:
    arrived, sent = healthy()["arrived"][:1], healthy()["deliveries"]
    unknown = [sent[0], replace(sent[1], state="unknown")]
    assert judged(arrived=arrived, deliveries=unknown, idempotent=False) == []
    assert judged(arrived=arrived, deliveries=sent, idempotent=False)
    assert judged(arrived=arrived, deliveries=unknown)


async def test_crash_comes_before_or_after_the_step_that_was_ordered() -> None:
    happened: list[str] = []

    async def work() -> list[int]:
        happened.append("work")
        return [1]

    before = crashes.Crash("before:turns.claim:2", lambda: happened.append("death"))
    for _ in range(3):
        await before.around("turns.claim", work)
    assert happened == ["work", "death", "work", "work"]
    happened.clear()
    after = crashes.Crash("after:turns.claim", lambda: happened.append("death"))
    await after.around("turns.begin", work)
    await after.around("turns.claim", work)
    assert happened == ["work", "work", "death"]


async def test_step_that_found_nothing_to_do_has_no_after() -> None:
    happened: list[str] = []

    async def nothing() -> list[int]:
        return []

    await crashes.Crash("after:turns.claim", lambda: happened.append("death")).around("turns.claim", nothing)
    assert not happened


def test_unknown_step_is_refused() -> None:
    with pytest.raises(ValueError, match="no step is called"):
        crashes.Crash("before:turns.dance")
