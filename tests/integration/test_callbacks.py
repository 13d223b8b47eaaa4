"""Callbacks over real HTTP: signed, repeated until they are heard, to no other address than was named."""

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from frontdesk import errors
from frontdesk.app.confirmations import open_confirmations
from frontdesk.contracts import channels
from frontdesk.formats import webhooks
from frontdesk.model.confirmations import Caller, Kind, Settings
from tests import loopback
from tests.flow.harness import poll

SECRET = "a secret that signs what programs are told"
AGENT = Caller(id="token:agent", kind=Kind.AGENT)
ANN = Caller(id="token:ann", kind=Kind.APPROVER)


class Program:
    """Answers with the statuses it was told, then with 204."""

    def __init__(self, *statuses: int) -> None:
        self._statuses = list(statuses)
        self.heard: list[channels.Request] = []

    async def handle(self, request: channels.Request) -> channels.Response:
        self.heard.append(request)
        status = self._statuses.pop(0) if self._statuses else 204
        return channels.Response(status=status, headers={"location": "/elsewhere"} if status == 307 else {})

    async def has_heard(self, count: int) -> list[channels.Request]:
        async def look() -> list[channels.Request] | None:
            return self.heard if len(self.heard) >= count else None

        return await poll(look)


async def decide(tmp_path: Path, program: Program, count: int) -> str:
    """Ask, approve, and wait until the program was called so often; the confirmation's id."""
    routes = [
        channels.Route(method="POST", path=path, handle=program.handle) for path in ("/decided", "/elsewhere")
    ]
    async with loopback.served(routes) as url:
        settings = Settings(callbacks=(f"{url}/",))
        store = f"sqlite:///{tmp_path}/state.db"
        async with open_confirmations(store, settings, callback_secret=lambda: SECRET) as service:
            data = {"action": "send", "description": "Send it?", "callback_url": f"{url}/decided"}
            asked = (await service.submit(data, AGENT)).confirmation
            await service.approve(asked.id, ANN)
            await program.has_heard(count)
            return asked.id


async def test_decision_is_posted_and_signed(tmp_path: Path) -> None:
    program = Program()
    asked = await decide(tmp_path, program, 1)
    (heard,) = program.heard
    assert webhooks.verify([SECRET], heard.headers, heard.body, now=datetime.now(UTC)) == asked
    told = json.loads(heard.body)
    assert (told["id"], told["status"], told["resolved_by"]) == (asked, "approved", ANN.id)


@pytest.mark.parametrize("status", [500, 307])
async def test_what_was_not_heard_is_repeated_and_no_redirection_followed(
    tmp_path: Path, status: int
) -> None:
    program = Program(status)
    await decide(tmp_path, program, 2)
    assert [each.path for each in program.heard] == ["/decided", "/decided"]


@pytest.mark.parametrize(
    "url", ["http://169.254.169.254/latest", "file:///etc/passwd", "https://good.example.evil/"]
)
async def test_address_that_nobody_allowed_is_refused(tmp_path: Path, url: str) -> None:
    settings = Settings(callbacks=("https://good.example/",))
    async with open_confirmations(f"sqlite:///{tmp_path}/state.db", settings) as service:
        data = {"action": "send", "description": "Send it?", "callback_url": url}
        with pytest.raises(errors.InvalidInput, match="callback_url"):
            await service.submit(data, AGENT)
        assert await service.pending_count() == 0
