"""``frontdesk confirm mcp``: confirmations as tools for an agent that speaks MCP."""

import asyncio
import sys
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import click
import msgspec
from msgspec import Meta

from frontdesk import config, errors
from frontdesk.app import loglines
from frontdesk.cli import output
from frontdesk.cli.confirm import reaching
from frontdesk.cli.confirm.protocol import McpServer, Tell, Tool, ToolOutcome
from frontdesk.confirm.client import Client
from frontdesk.confirm.records import Ticket
from frontdesk.formats import canonical, cards
from frontdesk.model.confirmations import DEFAULT_REQUESTER, GRANT_SECONDS, Status

MAX_LINE_BYTES = 8 * 1024 * 1024
MOST_WAITING = 100
PATIENCE_SECONDS = 5.0
DEFAULT_WAIT_SECONDS = 45
"""Shorter than the minute after which many clients give a tool up."""
TOLD_SECONDS = 10
MOST_SHOWN_BYTES = 16 * 1024
"""The agent is not told more than that of what it has asked for itself."""

INSTRUCTIONS = (
    "Before you do something dangerous, call request_confirmation with everything that it depends on in "
    "details. A person decides. Then call redeem_confirmation and carry out exactly the details that it "
    "returns, once, and nothing else. When it is denied or nobody decides in time, do not do it."
)
APPROVED = (
    "Approved. Call redeem_confirmation with this id and digest within {seconds} seconds, and carry out "
    "exactly what it returns."
)
PENDING = (
    "Nobody has decided yet. Call redeem_confirmation with this id and digest: it waits for the decision."
)
AGAIN = (
    "The approval was not used in time, so that a person is asked once more. Call redeem_confirmation with "
    "this new id and the same digest: it waits for the decision."
)
SHOWN = "{told}\n\nThe person who decides is shown this:\n\n{card}"
REDEEMED = "Approved and used up. Carry out exactly this, now and once:\n{payload}"

Call = Callable[[Any, Tell], Awaitable[ToolOutcome]]
Wait = Annotated[int, Meta(ge=0, le=3600, description="How many seconds to wait for a decision at most.")]


@click.command(
    "mcp", epilog=output.examples("CONFIRMATION_TOKEN=… frontdesk confirm mcp --url http://127.0.0.1:6000")
)
@reaching.URL
@click.pass_obj
def mcp_command(config_file: Path | None, url: str | None) -> None:
    """Offer the tools request_confirmation and redeem_confirmation to an agent.

    It is an MCP server on standard input and output, for the agent to start. The agent's token is in the
    variable that confirm.token_env names, which is CONFIRMATION_TOKEN unless set otherwise.
    """
    loaded = config.load(config_file)
    loglines.listen("warning")
    client = Client(
        reaching.address(loaded, url), reaching.given_token(loaded), patience_seconds=PATIENCE_SECONDS
    )
    with suppress(BrokenPipeError, KeyboardInterrupt):
        asyncio.run(McpServer(ConfirmationTools(client).tools, INSTRUCTIONS, _write).serve(_lines()))


def _write(line: bytes) -> None:
    sys.stdout.buffer.write(line)
    sys.stdout.buffer.flush()


async def _lines() -> AsyncIterator[bytes]:
    """The lines of the standard input. They are read in a thread that nobody waits for at the end."""
    loop = asyncio.get_running_loop()
    coming: asyncio.Queue[bytes] = asyncio.Queue()
    room = threading.Semaphore(MOST_WAITING)

    def read() -> None:
        while True:
            room.acquire()
            line = sys.stdin.buffer.readline(MAX_LINE_BYTES)
            with suppress(RuntimeError):  # the loop has ended before the input
                loop.call_soon_threadsafe(coming.put_nowait, line)
            if not line:
                return

    threading.Thread(target=read, name="frontdesk-mcp-input", daemon=True).start()
    while line := await coming.get():
        room.release()
        yield line


class AskArguments(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    action: Annotated[
        str, Meta(min_length=1, max_length=200, description="What kind of action it is, such as delete_data.")
    ]
    description: Annotated[
        str, Meta(min_length=1, max_length=10_000, description="What it is for, in your own words.")
    ]
    details: Annotated[
        dict[str, Any], Meta(description="Every argument of the action: the person approves exactly these.")
    ] = {}
    timeout_seconds: Annotated[
        int, Meta(ge=30, le=3600, description="How many seconds people may take to decide.")
    ] = 300
    session_key: Annotated[str, Meta(description="The conversation that it belongs to.")] | None = None
    wait_seconds: Wait = DEFAULT_WAIT_SECONDS


class RedeemArguments(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    id: Annotated[str, Meta(min_length=1, description="As request_confirmation gave it.")]
    digest: Annotated[str, Meta(min_length=1, description="As request_confirmation gave it.")]
    wait_seconds: Wait = DEFAULT_WAIT_SECONDS


class ConfirmationTools:
    def __init__(self, client: Client) -> None:
        self._client = client

    @property
    def tools(self) -> list[Tool]:
        ask = "Ask a person to allow a dangerous action before you carry it out."
        use = "Wait for the decision, use the approval up, and get the exact action."
        return [
            _tool("request_confirmation", "Ask a person", ask, AskArguments, self.request),
            _tool("redeem_confirmation", "Use an approval", use, RedeemArguments, self.redeem),
        ]

    async def request(self, asking: AskArguments, tell: Tell) -> ToolOutcome:
        said = msgspec.structs.asdict(asking)
        del said["wait_seconds"]
        ticket = await self._client.request(**said)
        if not await self._approved(ticket, asking.wait_seconds, tell):
            return _pending(ticket, SHOWN.format(told=PENDING, card=_card(asking)))
        return ToolOutcome(text=APPROVED.format(seconds=GRANT_SECONDS), facts=_facts(ticket, Status.APPROVED))

    async def redeem(self, redeeming: RedeemArguments, tell: Tell) -> ToolOutcome:
        ticket = Ticket(id=redeeming.id, action="", digest=redeeming.digest)
        if not await self._approved(ticket, redeeming.wait_seconds, tell):
            return _pending(ticket)
        try:
            redeemed = await self._client.redeem(ticket)
        except errors.GrantUnusable as lapsed:
            if lapsed.renewal is None:
                raise
            return _pending(msgspec.structs.replace(ticket, id=lapsed.renewal), AGAIN)
        payload = redeemed.payload.decode()
        facts = _facts(ticket, Status.APPROVED) | canonical.read_strict(redeemed.payload)
        return ToolOutcome(text=REDEEMED.format(payload=payload), facts=facts | {"payload": payload})

    async def _approved(self, ticket: Ticket, seconds: int, tell: Tell) -> bool:
        """Whether it is approved after so long; whoever waits hears that we still do. NotConfirmed when it
        will not be."""
        while True:
            decision = await self._client.wait(ticket, min(seconds, TOLD_SECONDS))
            if decision.status is not Status.PENDING:
                decision.check()
                return True
            seconds -= TOLD_SECONDS
            if seconds <= 0:
                return False
            tell(f"Nobody has decided about {ticket.id} yet.")


async def _guarded(
    call: Call, kind: type[msgspec.Struct], arguments: Mapping[str, Any], tell: Tell
) -> ToolOutcome:
    """What stands in the way is told to the agent, which must not go on then."""
    try:
        return await call(msgspec.convert(arguments, type=kind), tell)
    except errors.NotConfirmed as refusal:
        status = Status.DENIED if isinstance(refusal, errors.Denied) else Status.EXPIRED
        return ToolOutcome(text=f"{refusal} Do not do it.", facts={"status": str(status)}, failed=True)
    except (errors.FrontdeskError, msgspec.ValidationError) as error:
        unusable = "The arguments cannot be used: " if isinstance(error, msgspec.ValidationError) else ""
        return ToolOutcome(text=f"{unusable}{error}", facts={"status": "error"}, failed=True)


def _pending(ticket: Ticket, text: str = PENDING) -> ToolOutcome:
    return ToolOutcome(text=text, facts=_facts(ticket, Status.PENDING))


def _card(asking: AskArguments) -> str:
    """What people see of it; who asks is the service's to say."""
    payload = canonical.payload(asking.action.strip(), asking.details)
    card = cards.make(payload, asking.description, DEFAULT_REQUESTER)
    arguments = card.arguments() if len(payload) <= MOST_SHOWN_BYTES else "[all arguments]"
    parts = (card.words_said("the person can see them"), card.oddities(), arguments, card.closing())
    return "\n\n".join(part for part in parts if part)


def _facts(ticket: Ticket, status: Status) -> dict[str, Any]:
    return {"id": ticket.id, "digest": ticket.digest, "status": str(status)}


def _tool(name: str, title: str, description: str, kind: type[msgspec.Struct], call: Call) -> Tool:
    """The schema of its arguments is complete in itself."""
    _, components = msgspec.json.schema_components([kind], ref_template="#/$defs/{name}")
    told = {"name": name, "title": title, "description": description}
    return Tool(listed=told | {"inputSchema": components[kind.__name__]}, call=partial(_guarded, call, kind))
