"""A turn that needs approval: it waits, people decide, exactly what was approved is carried out, once."""

from collections.abc import AsyncGenerator, AsyncIterator
from datetime import timedelta
from typing import Any

import pytest

from frontdesk import GatewayConfig, HomeChannel, Platform, PlatformConfig, errors
from frontdesk.contracts.agents import Abilities, Line
from frontdesk.model import audit, codes, deliveries, events, turns
from frontdesk.model.access import Access
from frontdesk.model.confirmations import Caller, CallerKind, Confirmation, Settings, Status, Vote
from frontdesk.model.rules import Effect, Rule
from frontdesk.model.running import Running
from frontdesk.model.turns import Busy
from frontdesk.testing import SettableClock
from tests.contracts.samples import LASTING
from tests.flow.harness import House, Notebook, open_house, poll

CONFIG = GatewayConfig(
    default_reset_policy=LASTING.default_reset_policy,
    access={"matrix": Access(administrators=("root",), allow=("*",))},
)
OWNER = Caller(id="token:owner", kind=CallerKind.APPROVER)


@pytest.fixture
async def house(store_url: str) -> AsyncIterator[House]:
    async with open_house(store_url, config=CONFIG, notebook=reliable()) as opened:
        yield opened


def reliable() -> Notebook:
    return Notebook(reliable_sender_ids=True)


async def pending(house: House) -> Confirmation:
    async def look() -> Confirmation | None:
        found = await house.gateway.parts.confirmations.list(10, Status.PENDING)
        return found[0] if found else None

    return await poll(look)


async def kinds(house: House) -> list[audit.AuditKind]:
    return [row.entry.kind for row in await house.gateway.parts.store.confirmations.audit_rows(0, 10**6)]


async def redeemed(house: House) -> bool | None:
    return audit.AuditKind.REDEEMED in await kinds(house) or None


async def test_turn_waits_and_goes_on_once_it_is_approved(house: House) -> None:
    receipt = await house.say("!approve remove_file Remove a.txt?")
    asked = await pending(house)
    await house.until(receipt.turn_id, turns.TurnState.WAITING)
    assert asked.action == "remove_file"
    assert f"{asked.id} is approved" in await house.ask(f"/approve {asked.id}", user="root")
    assert (await house.finished(receipt.turn_id)).state is turns.TurnState.DONE
    assert (await house.notebook.wait_for(2))[-1] == "approved: remove_file"
    assert await kinds(house) == [
        audit.AuditKind.SUBMITTED,
        audit.AuditKind.APPROVED,
        audit.AuditKind.REDEEMED,
    ]


async def test_denied_turn_is_told_the_reason(house: House) -> None:
    receipt = await house.say("!approve remove_file")
    asked = await pending(house)
    await house.ask(f"/deny {asked.id} not on a Friday", user="root")
    await house.finished(receipt.turn_id)
    assert "denied: remove_file (not on a Friday)" in await house.notebook.wait_for(2)


async def test_people_see_the_action_and_how_to_decide(house: House) -> None:
    await house.say("!approve remove_file Remove a.txt?")
    asked = await pending(house)
    (told,) = await house.notebook.wait_for(1, "notice")
    assert "remove_file" in told
    assert "Remove a.txt?" in told
    assert f"/approve {asked.id}" in told
    assert f"/deny {asked.id}" in told


async def test_message_meanwhile_is_queued_with_a_notice_that_says_why(house: House) -> None:
    receipt = await house.say("!approve remove_file")
    asked = await pending(house)
    await house.until(receipt.turn_id, turns.TurnState.WAITING)
    await house.say("are you there?")
    assert any("wait for somebody" in text for text in await house.notebook.wait_for(2, "notice"))
    await house.ask(f"/approve {asked.id}", user="root")
    assert "echo: are you there?" in await house.notebook.wait_for(3)


@pytest.mark.parametrize("user", ["ann", "eve"])
async def test_who_is_no_approver_decides_nothing(house: House, user: str) -> None:
    await house.say("!approve remove_file")
    asked = await pending(house)
    for text in (f"/approve {asked.id}", f"/deny {asked.id}"):
        for _ in range(3):
            assert "may not" in await house.ask(text, user=user)
    assert (await pending(house)).id == asked.id
    assert (await kinds(house)).count(audit.AuditKind.REFUSED) == 2


async def test_agent_never_decides_about_what_it_asks_for(house: House) -> None:
    receipt = await house.say("!approve remove_file")
    asked = await pending(house)
    turn = await house.store.turns.find(receipt.turn_id)
    assert turn
    agent = Caller(id=turn.session_key, kind=CallerKind.AGENT)
    posing = Caller(id=turn.session_key, kind=CallerKind.APPROVER)
    for caller in (agent, posing):
        with pytest.raises(errors.NotAllowed):
            await house.gateway.parts.confirmations.approve(asked.id, caller)
    assert (await pending(house)).status is Status.PENDING


SECRET = "aB3dE5gH7jK9"


@pytest.mark.parametrize(
    ("details", "group", "shown"),
    [
        ({"token": SECRET}, False, False),
        ({"token": SECRET}, True, False),
        ({"password": "production"}, False, True),
        ({"password": "production"}, True, False),
    ],
)
async def test_chat_approves_nothing_that_it_hides(
    store_url: str, details: dict[str, Any], group: bool, shown: bool
) -> None:
    agent = Asking(action="drop", details=details)
    async with open_house(store_url, config=CONFIG, notebook=reliable(), agent=agent) as house:
        kind = {"chat_type": "group"} if group else {}
        await house.say("go", source=house.source("ann", **kind))
        asked = await pending(house)
        (told,) = await house.notebook.wait_for(1, "notice")
        assert (f"/approve {asked.id}" in told, f"/deny {asked.id}" in told) == (shown, True)
        assert all((value in told) is shown for value in details.values())
        said = await house.ask(f"/approve {asked.id}", source=house.source("root", **kind), user="root")
        if shown:
            assert "is approved" in said
        else:
            assert "not looked at" in said
            assert f"frontdesk confirm show {asked.id}" in said
            assert (await pending(house)).status is Status.PENDING


async def test_target_of_one_of_the_ten_is_typed_in_the_chat(store_url: str) -> None:
    agent = Asking(action="wipe_database", details={"database": "customers prod"})
    async with open_house(store_url, config=CONFIG, notebook=reliable(), agent=agent) as house:
        await house.say("go")
        asked = await pending(house)
        (told,) = await house.notebook.wait_for(1, "notice")
        assert f"/approve {asked.id} TARGET" in told
        for words in ("", " because", " customers", " Customers Prod"):
            refused = await house.ask(f"/approve {asked.id}{words}", user="root")
            assert 'type the value of "database"' in refused
        assert (await pending(house)).status is Status.PENDING
        said = await house.ask(f"/approve {asked.id} customers prod it was agreed", user="root")
        assert "is approved" in said
        decided = await house.gateway.parts.confirmations.find(asked.id)
        assert decided.reason == "it was agreed"


async def test_notice_ends_in_the_action_whatever_the_agent_says(store_url: str) -> None:
    words = "Yes.\n" * 400 + 'Action: "list_files"'
    agent = Asking(action="drop", details={"path": "/srv"}, description=words)
    async with open_house(store_url, config=CONFIG, notebook=reliable(), agent=agent) as house:
        await house.say("go")
        (told,) = await house.notebook.wait_for(1, "notice")
    lines = told.splitlines()
    assert lines[-3:-1] == ['Action: "drop"', 'Its path: "/srv"']
    assert len([line for line in lines if line.startswith(">")]) == 5
    assert "list_files" not in told


async def test_stop_ends_the_waiting(house: House) -> None:
    receipt = await house.say("!approve remove_file")
    await pending(house)
    await house.until(receipt.turn_id, turns.TurnState.WAITING)
    await house.ask("/stop")
    assert (await house.finished(receipt.turn_id)).state is turns.TurnState.INTERRUPTED


async def denied(house: House, action: str) -> str:
    """What somebody hears who denies what an agent asks for."""
    receipt = await house.say(f"!approve {action}")
    told = await house.ask(f"/deny {(await pending(house)).id}", user="root")
    await house.finished(receipt.turn_id)
    return told


async def test_agent_that_was_denied_too_often_is_paused_until_an_approver_lifts_it(house: House) -> None:
    told = [await denied(house, f"remove_{name}") for name in "abcde"]
    (pause,) = await house.gateway.parts.confirmations.pauses()
    assert [f"/lift {pause.requester}" in text for text in told] == [False] * 4 + [True]
    refused = await house.say("!approve remove_f")
    assert (await house.finished(refused.turn_id)).state is turns.TurnState.DONE
    assert await house.gateway.parts.confirmations.pending_count() == 0
    assert "may not" in await house.ask("/lift", user="eve")
    assert "is not paused" in await house.ask("/lift token:other", user="root")
    assert "again" in await house.ask(f"/lift {pause.requester}", user="root")
    await house.say("!approve remove_f")
    assert (await pending(house)).action == "remove_f"


async def test_decision_of_something_unknown_is_answered(house: House) -> None:
    assert "c_unknown" in await house.ask("/approve c_unknown", user="root")


async def test_second_decision_is_told_the_first(house: House) -> None:
    receipt = await house.say("!approve remove_file")
    asked = await pending(house)
    await house.ask(f"/deny {asked.id}", user="root")
    await house.finished(receipt.turn_id)
    assert "is denied" in await house.ask(f"/approve {asked.id}", user="root")


async def test_turn_goes_on_waiting_after_a_restart_and_is_carried_out_once(store_url: str) -> None:
    async with open_house(store_url, config=CONFIG, notebook=reliable()) as first:
        receipt = await first.say("!approve remove_file")
        asked = await pending(first)
        await first.until(receipt.turn_id, turns.TurnState.WAITING)
    async with open_house(store_url, config=CONFIG, notebook=reliable()) as second:
        assert (await pending(second)).id == asked.id
        await second.until(receipt.turn_id, turns.TurnState.WAITING)
        await second.ask(f"/approve {asked.id}", user="root", event_id="the decision")
        await second.finished(receipt.turn_id)
        assert "approved: remove_file" in await second.notebook.wait_for(2)
        assert (await kinds(second)).count(audit.AuditKind.REDEEMED) == 1


async def test_decision_made_while_nobody_ran_is_found(store_url: str) -> None:
    async with open_house(store_url, config=CONFIG, notebook=reliable()) as first:
        receipt = await first.say("!approve remove_file")
        asked = await pending(first)
        await first.until(receipt.turn_id, turns.TurnState.WAITING)
    async with open_house(store_url, config=CONFIG, agent=Silent(), notebook=reliable()) as between:
        await between.gateway.parts.confirmations.deny(asked.id, OWNER, reason="while away")
    async with open_house(store_url, config=CONFIG, notebook=reliable()) as second:
        await second.finished(receipt.turn_id)
        assert any("while away" in text for text in await second.notebook.wait_for(1))


async def test_home_channel_of_the_first_platform_is_told(store_url: str) -> None:
    home = HomeChannel(platform=Platform.MATRIX, chat_id="the-office", name="Office")
    config = GatewayConfig(
        default_reset_policy=LASTING.default_reset_policy,
        access=CONFIG.access,
        platforms={"matrix": PlatformConfig(home_channel=home)},
    )
    async with open_house(store_url, config=config, notebook=reliable()) as house:
        data = {"action": "send_mail", "description": "Write to everybody", "details": {"to": "all"}}
        agent = Caller(id="token:mailer", kind=CallerKind.AGENT)
        submitted = await house.gateway.parts.confirmations.submit(data, agent)
        await house.notebook.wait_for(1, "notice")
        (told,) = house.notebook.sent
        assert told.to.chat_id == "the-office"
        assert told.extra["confirmation"] == submitted.confirmation.id


async def test_action_that_is_too_long_for_the_chat_is_shown_elsewhere(store_url: str) -> None:
    notebook = Notebook(reliable_sender_ids=True, text_limit=1_200)
    asking = Asking(action="write", details={"text": "x" * 5_000})
    page = Settings(page_url="https://desk.example")
    async with open_house(
        store_url, config=CONFIG, notebook=notebook, agent=asking, confirming=page
    ) as house:
        await house.say("go")
        asked = await pending(house)
        (told,) = await notebook.wait_for(1, "notice")
        assert f"https://desk.example/approvals/{asked.id}" in told
        assert "/approve" not in told
        answer = await house.ask(f"/approve {asked.id}", user="root")
        assert (
            f"not looked at all of it. Look at it and decide there: https://desk.example/approvals/{asked.id}"
            in answer
        )
        assert (await pending(house)).id == asked.id


class Silent:
    """An agent that never says anything."""

    abilities = Abilities()

    async def run(self, turn: events.Assignment, line: Line) -> AsyncGenerator[events.Event, None]:
        await line.stopped()
        yield events.Done()

    async def release(self, session_id: str) -> None: ...

    async def close(self) -> None: ...


class Asking(Silent):
    """An agent that asks for one action, and says what was decided."""

    def __init__(self, **fields: Any) -> None:
        self._fields = fields

    async def run(self, turn: events.Assignment, line: Line) -> AsyncGenerator[events.Event, None]:
        yield events.Approval(id="1", **({"description": "Please"} | self._fields))
        decision = await line.receive()
        assert isinstance(decision, events.Decision)
        yield events.Text(text="yes" if decision.approved else f"no: {decision.reason}")


async def test_person_with_two_names_counts_once(store_url: str) -> None:
    same = Settings(persons=(frozenset({"token:owner", "matrix:root"}),))
    async with open_house(store_url, config=CONFIG, notebook=reliable(), confirming=same) as house:
        service = house.gateway.parts.confirmations
        await service.add_rule(Rule(id="two", effect=Effect.ASK, quorum=2), OWNER)
        await house.say("!approve remove_file")
        asked = await pending(house)
        await service.approve(asked.id, OWNER)
        assert "1 more" in await house.ask(f"/approve {asked.id}", user="root")
        other = Caller(id="token:other", kind=CallerKind.APPROVER)
        assert (await service.approve(asked.id, other)).status is Status.APPROVED


async def test_link_goes_to_the_home_channel_and_to_no_other_chat(store_url: str) -> None:
    home = HomeChannel(platform=Platform.MATRIX, chat_id="the-office", name="Office")
    config = GatewayConfig(
        default_reset_policy=LASTING.default_reset_policy,
        access=CONFIG.access,
        platforms={"matrix": PlatformConfig(home_channel=home)},
    )
    async with open_house(store_url, config=config, notebook=reliable()) as house:
        house.gateway.parts.notifier.offer_links(lambda asked: f"https://desk.example/{asked.id}?t=signed")
        await house.say("!approve remove_file")
        asked = await pending(house)
        await house.notebook.wait_for(2, "notice")
        told = {each.to.chat_id: each.text for each in house.notebook.sent}
        assert f"https://desk.example/{asked.id}?t=signed" in told["the-office"]
        assert "signed" not in told["chat-ann"]


async def test_names_of_one_person_are_followed_through_settings_and_links(store_url: str) -> None:
    """Ann's token is her matrix account by the settings, which is linked to her other one."""
    same = Settings(persons=(frozenset({"token:ann", "matrix:ann"}),))
    async with open_house(store_url, config=CONFIG, notebook=reliable(), confirming=same) as house:
        pairing = await linked(house, "matrix:ann", "telegram:ann")
        assert pairing
        service = house.gateway.parts.confirmations
        await service.add_rule(Rule(id="two", effect=Effect.ASK, quorum=2), OWNER)
        for first, second in (("telegram:ann", "token:ann"), ("token:ann", "telegram:ann")):
            data = {"action": "send", "description": "Send it?", "details": {"first": first}}
            asked = (await service.submit(data, Caller(id="token:bot", kind=CallerKind.AGENT))).confirmation
            for name in (first, second):
                asked = await service.approve(asked.id, Caller(id=name, kind=CallerKind.APPROVER))
            assert asked.status is Status.PENDING
            assert len(asked.approvals) == 1


async def linked(house: House, one: str, other: str) -> bool:
    """Two accounts that their owner has linked with a code."""
    code, now = codes.new_code(), house.gateway.parts.clock.now()
    offer = codes.Pairing(
        kind=codes.CodeKind.LINK,
        principal=one,
        platform=one.partition(":")[0],
        created_at=now,
        expires_at=now + codes.VALID_FOR,
    )
    assert await house.store.people.begin_pairing(offer, codes.seal(code), now)
    trial = await house.store.people.link(code, other, person="p1", now=now)
    return trial.pairing is not None


async def test_renewal_is_shown_and_the_turn_waits_for_it(store_url: str, clock: SettableClock) -> None:
    async with open_house(store_url, config=CONFIG, notebook=reliable(), clock=clock) as house:
        receipt = await house.say("!approve remove_file")
        asked = await pending(house)
        await house.until(receipt.turn_id, turns.TurnState.WAITING)
        await house.store.confirmations.vote(
            asked.id,
            lambda _, __: None,
            Vote(approves=True, by="token:owner"),
            clock.now() + timedelta(seconds=120),
            tell=lambda *_: (),
        )
        renewed = await pending(house)
        assert renewed.renewal_of == asked.id
        await house.until(receipt.turn_id, turns.TurnState.WAITING)
        assert any(renewed.id in text for text in await house.notebook.wait_for(2, "notice"))
        await house.gateway.parts.confirmations.approve(renewed.id, OWNER)
        await house.finished(receipt.turn_id)
        assert "approved: remove_file" in await house.notebook.wait_for(1)


@pytest.mark.parametrize("mode", [Busy.STEER, Busy.INTERRUPT])
async def test_message_does_not_disturb_what_waits_for_people(store_url: str, mode: Busy) -> None:
    running = Running(drain_seconds=1.0, busy_mode=mode)
    async with open_house(store_url, config=CONFIG, notebook=reliable(), running=running) as house:
        receipt = await house.say("!approve remove_file")
        asked = await pending(house)
        await house.until(receipt.turn_id, turns.TurnState.WAITING)
        await house.say("are you there?")
        await house.ask(f"/approve {asked.id}", user="root")
        assert (await house.finished(receipt.turn_id)).state is turns.TurnState.DONE
        assert "echo: are you there?" in await house.notebook.wait_for(3)


@pytest.fixture
def clock() -> SettableClock:
    return SettableClock()


async def test_renewal_follows_the_rules_of_today(store_url: str, clock: SettableClock) -> None:
    async with open_house(store_url, config=CONFIG, notebook=reliable(), clock=clock) as house:
        service, agent = house.gateway.parts.confirmations, Caller(id="token:bot", kind=CallerKind.AGENT)
        asked = []
        for number in range(2):
            data = {"action": f"send_{number}", "description": "Send it?"}
            asked.append((await service.submit(data, agent)).confirmation)
            await service.approve(asked[-1].id, OWNER)
        await service.add_rule(Rule(id="no", effect=Effect.DENY, action="send_0"), OWNER)
        await service.add_rule(Rule(id="two", effect=Effect.ASK, action="send_1", quorum=2), OWNER)
        clock.advance(timedelta(seconds=61))
        renewals = []
        for each in asked:
            with pytest.raises(errors.GrantUnusable) as refused:
                await service.redeem(each.id, agent, each.digest)
            renewals.append(refused.value.renewal)
        assert renewals[0] is None
        assert renewals[1] is not None
        assert (await service.find(renewals[1])).terms.quorum == 2


def one_at_a_time() -> Running:
    return Running(drain_seconds=1.0, turns_at_once=1)


async def test_turn_that_waits_for_people_holds_up_no_other_chat(store_url: str) -> None:
    async with open_house(store_url, config=CONFIG, notebook=reliable(), running=one_at_a_time()) as house:
        first = await house.say("!approve remove_file")
        asked = await pending(house)
        await house.until(first.turn_id, turns.TurnState.WAITING)
        assert await house.ask("hello", user="ben") == "echo: hello"
        assert (await pending(house)).id == asked.id
        await house.gateway.parts.confirmations.approve(asked.id, OWNER)
        assert (await house.finished(first.turn_id)).state is turns.TurnState.DONE
        assert "approved: remove_file" in await house.notebook.wait_for(2)


async def test_turns_that_wait_for_people_do_not_add_up(store_url: str) -> None:
    """Each of them has given its one place back, and the conversation of each is still its own."""
    users = ("ann", "ben", "cat")
    async with open_house(store_url, config=CONFIG, notebook=reliable(), running=one_at_a_time()) as house:
        waiting = [await house.say(f"!approve remove_{user}", user=user) for user in users]
        for receipt in waiting:
            await house.until(receipt.turn_id, turns.TurnState.WAITING)
        later = await house.say("and then?", user="ann")
        assert await house.ask("hello", user="dan") == "echo: hello"
        behind = await house.store.turns.find(later.turn_id)
        assert behind
        assert behind.state is turns.TurnState.QUEUED
        for asked in await house.gateway.parts.confirmations.list(10, Status.PENDING):
            await house.gateway.parts.confirmations.approve(asked.id, OWNER)
        for receipt in (*waiting, later):
            assert (await house.finished(receipt.turn_id)).state is turns.TurnState.DONE


async def test_decided_turn_goes_on_although_another_has_its_place(store_url: str) -> None:
    """Its grant would not wait; nothing new is begun until there is room again."""
    async with open_house(store_url, config=CONFIG, notebook=reliable(), running=one_at_a_time()) as house:
        first = await house.say("!approve remove_file; !hang")
        asked = await pending(house)
        await house.until(first.turn_id, turns.TurnState.WAITING)
        second = await house.say("!hang", user="ben")
        await house.until(second.turn_id, turns.TurnState.RUNNING)
        third = await house.say("hello", user="cat")
        await house.gateway.parts.confirmations.approve(asked.id, OWNER)
        await poll(lambda: redeemed(house))
        await house.ask("/stop", user="ben")
        behind = await house.store.turns.find(third.turn_id)
        assert behind
        assert behind.state is turns.TurnState.QUEUED
        await house.ask("/stop")
        assert (await house.finished(third.turn_id)).state is turns.TurnState.DONE


async def test_waiting_turn_is_let_go_when_the_gateway_closes(store_url: str) -> None:
    """It does not hold up the end, however long others may take, and is not withdrawn."""
    patient = Running(drain_seconds=3_600.0)
    async with open_house(store_url, config=CONFIG, notebook=reliable(), running=patient) as house:
        receipt = await house.say("!approve remove_file")
        asked = await pending(house)
        await house.until(receipt.turn_id, turns.TurnState.WAITING)
    async with open_house(store_url, config=CONFIG, notebook=reliable()) as second:
        assert (await second.gateway.parts.confirmations.find(asked.id)).status is Status.PENDING
        turn = await second.until(receipt.turn_id, turns.TurnState.WAITING)
        assert turn.tries == 1


async def test_question_is_an_answer_to_the_message_that_it_is_about(house: House) -> None:
    await house.say("!approve remove_file", event_id="the-message")
    await pending(house)
    await house.notebook.wait_for(1, "notice")
    assert [each.event_id for each in house.notebook.sent] == ["the-message"]


async def test_requester_is_named_by_the_key_of_its_conversation(house: House) -> None:
    await house.say("!approve remove_file")
    assert (await pending(house)).requester == await house.key()


async def decide_while_nobody_looks(house: House) -> tuple[turns.Turn, Confirmation]:
    receipt = await house.say("!approve remove_file")
    asked = await pending(house)
    await house.gateway.parts.confirmations.deny(asked.id, OWNER, reason="no")
    return await house.finished(receipt.turn_id), asked


async def test_question_that_was_decided_is_not_shown_as_open(store_url: str) -> None:
    box = Notebook(collects=True)
    async with open_house(store_url, config=CONFIG, notebook=box) as house:
        turn, asked = await decide_while_nobody_looks(house)
        waiting = await house.gateway.desk.uncollected(house.source())
        answers = await house.gateway.desk.answers(turn.id)
    for said in (waiting, answers):
        (told,) = [each.text for each in said if each.confirmation_id == asked.id]
        assert told == f'{asked.id} ("remove_file") was denied by token:owner.'


async def test_question_that_was_decided_before_it_could_be_sent_says_so(store_url: str) -> None:
    down = reliable()
    down.outcomes = [deliveries.NotSent(why="down")]
    async with open_house(store_url, config=CONFIG, notebook=down) as house:
        _, asked = await decide_while_nobody_looks(house)
        (told, *_) = await down.wait_for(1, "notice")
    assert told == f'{asked.id} ("remove_file") was denied by token:owner.'
