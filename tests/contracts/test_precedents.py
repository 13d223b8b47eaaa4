"""What people approved before of the same kind, on every store."""

from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from frontdesk import plugins
from frontdesk.flow.confirmations import submissions
from frontdesk.model.confirmations import (
    Caller,
    CallerKind,
    Confirmation,
    Settings,
    Submission,
)
from frontdesk.model.precedents import MOST_COMPARED_BYTES, Precedent
from frontdesk.model.rules import Effect
from frontdesk.stores.store import Store
from frontdesk.testing import SettableClock
from tests.contracts.asking import AGENT, Asker, ruling

OTHER = "token:other"


def wanted(details: Any, action: str = "run", requester: str = AGENT) -> Submission:
    data = {"action": action, "description": "please", "details": details}
    return submissions.read_submission(data, Caller(id=requester, kind=CallerKind.AGENT), Settings())


def command(line: str, **more: Any) -> Submission:
    return wanted({"argv": line.split()}, **more)


@pytest.fixture
async def asker(store_url: str, clock: SettableClock) -> AsyncIterator[Asker]:
    store: Store = await plugins.load_store(store_url)(store_url)
    yield Asker(store, clock)
    await store.close()


async def precedent(asker: Asker, asked: Submission | Confirmation) -> Precedent:
    found = await asker.kept.precedent(asked)
    assert found is not None
    return found


async def test_first_of_its_kind_has_none(asker: Asker) -> None:
    found = await precedent(asker, await asker.ask(command("kubectl delete ns staging")))
    assert (found.is_first_for_requester, found.is_first_for_target, found.payload) == (True, True, None)


async def test_last_one_approved_for_the_same_agent_is_found(asker: Asker, clock: SettableClock) -> None:
    for name in ("one", "two"):
        clock.advance(timedelta(minutes=1))
        await asker.approved(command(f"kubectl get ns {name}"))
    found = await precedent(asker, await asker.ask(command("kubectl delete ns three")))
    assert (found.is_first_for_requester, found.is_first_for_target) == (False, True)
    assert found.payload == command("kubectl get ns two").payload
    found = await precedent(asker, await asker.ask(command("kubectl delete ns one")))
    assert (found.is_first_for_requester, found.is_first_for_target) == (False, False)


@pytest.mark.parametrize(
    "other",
    [
        command("kubectl get ns one", requester=OTHER),
        command("helm get ns one"),
        command("kubectl get ns one", action="look"),
    ],
    ids=["agent", "program", "action"],
)
async def test_another_agent_program_or_action_is_no_precedent(asker: Asker, other: Submission) -> None:
    await asker.approved(other)
    found = await precedent(asker, command("kubectl get ns one"))
    assert found.is_first_for_requester
    assert found.payload is None
    assert found.is_first_for_target == (other.requester == AGENT), "a target is known whoever asked"


async def test_only_what_people_approved_counts(asker: Asker) -> None:
    asked = await asker.ask(command("rm a"))
    await asker.ask(command("rm b"), ruling(Effect.ALLOW))
    await asker.deny(await asker.ask(command("rm c")))
    assert (await precedent(asker, command("rm d"))).is_first_for_requester
    await asker.vote(asked)
    assert not (await precedent(asker, command("rm d"))).is_first_for_requester


async def test_decided_request_is_compared_with_what_was_before_it(
    asker: Asker, clock: SettableClock
) -> None:
    first = await asker.approved(command("rm a"))
    clock.advance(timedelta(minutes=1))
    second = await asker.approved(command("rm b"))
    clock.advance(timedelta(minutes=1))
    await asker.approved(command("rm c"))
    assert (await precedent(asker, first)).is_first_for_requester
    assert (await precedent(asker, second)).payload == first.payload


async def test_name_written_otherwise_is_of_the_same_kind(asker: Asker) -> None:
    await asker.approved(wanted({"to": "ann"}, action="send_mail"))
    assert not (await precedent(asker, wanted({"to": "bob"}, action="Send-Mаil"))).is_first_for_requester


async def test_what_was_erased_or_is_long_is_not_compared(asker: Asker, clock: SettableClock) -> None:
    short = await asker.approved(wanted({"to": "ann"}, action="send"))
    await asker.kept.erase(short.id, "token:ann", clock.now())
    found = await precedent(asker, wanted({"to": "bob"}, action="send"))
    assert (found.is_first_for_requester, found.payload) == (False, None)
    await asker.approved(wanted({"to": "ann", "text": "x" * MOST_COMPARED_BYTES}, action="post"))
    found = await precedent(asker, wanted({"to": "bob"}, action="post"))
    assert (found.is_first_for_requester, found.payload) == (False, None)


async def test_no_target_is_said_where_none_is_known(asker: Asker) -> None:
    assert not (await precedent(asker, wanted({"x": 1}, action="tidy"))).is_first_for_target


async def test_people_are_told_of_a_renewal_with_its_precedent(asker: Asker, clock: SettableClock) -> None:
    asked = await asker.approved(command("rm a"))
    clock.advance(timedelta(minutes=5))
    renewal = (await asker.redeem(asked)).renewal
    assert renewal is not None
    assert asker.told[-1].id == renewal.id
    assert asker.told[-1].precedent == Precedent(
        is_first_for_requester=False, is_first_for_target=False, payload=asked.payload
    )


async def test_name_of_the_person_is_kept(asker: Asker) -> None:
    data = {"action": "send", "description": "please"}
    caller = Caller(id=AGENT, kind=CallerKind.AGENT)
    submission = replace(
        submissions.read_submission(data, caller, Settings()), on_behalf_of="telegram:7", on_behalf_name="Ann"
    )
    found = await asker.kept.find((await asker.ask(submission)).id)
    assert found is not None
    assert (found.on_behalf_of, found.on_behalf_name) == ("telegram:7", "Ann")
