"""What the commands for lists and people offer is what documents name, and is done."""

import asyncio
import re
from datetime import UTC, datetime
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from frontdesk import Platform, SessionSource, SessionStore, config
from frontdesk.cli import main
from frontdesk.model.deliveries import Delivery, DeliveryState


def said(home: Path, *arguments: str) -> Result:
    return CliRunner(env={"FRONTDESK_HOME": str(home)}).invoke(main, arguments)


@pytest.mark.parametrize("wanted", ["waiting", "running", "set_aside", "recent"])
def test_turns_are_listed_by_the_names_that_the_api_has_for_them(tmp_path: Path, wanted: str) -> None:
    told = said(tmp_path, "turns", "list", "--show", wanted)
    assert (told.exit_code, told.stdout) == (0, "There are none.\n")


def test_role_of_a_chat_is_one_that_a_chat_has(tmp_path: Path) -> None:
    offered = re.search(r"--role \[(.*)\]", said(tmp_path, "people", "approve", "--help").output)
    assert offered
    assert offered[1].split("|") == ["user", "approver", "administrator"]


async def keep_in_trouble(home: Path, state: DeliveryState) -> None:
    """An answer that a platform did not take, or that may have arrived, and one that waits to be sent."""
    loaded = config.load(None, {"FRONTDESK_HOME": str(home)})
    to = SessionSource(platform=Platform("webhook"), account="shop", chat_id="42", user_id="7")
    made = datetime.now(UTC)
    rows = [
        Delivery(id=name, state=state, lane="chat:webhook::42:", to=to, text="Hello", created_at=made)
        for name, state in (("d_lost", state), ("d_waits", DeliveryState.PENDING))
    ]
    async with await SessionStore.open(loaded.store_url, loaded.gateway) as sessions:
        await sessions.store.deliveries.add(rows)


@pytest.mark.parametrize("state", [DeliveryState.DEAD, DeliveryState.UNKNOWN])
def test_answer_in_trouble_is_given_up_once(tmp_path: Path, state: DeliveryState) -> None:
    asyncio.run(keep_in_trouble(tmp_path, state))
    assert "d_lost" in said(tmp_path, "deliveries", "list").stdout
    given_up = said(tmp_path, "deliveries", "discard", "d_lost")
    assert (given_up.exit_code, given_up.stdout) == (0, "d_lost is discarded.\n")
    assert "d_lost" not in said(tmp_path, "deliveries", "list").stdout
    for name, is_now in (("d_lost", "discarded"), ("d_waits", "pending")):
        refused = said(tmp_path, "deliveries", "discard", name)
        told = f"{name} is {is_now}: only a dead or unknown one is discarded.\n"
        assert (refused.exit_code, refused.stdout) == (1, told)
