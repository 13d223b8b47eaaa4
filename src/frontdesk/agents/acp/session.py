"""A process with the session that it holds."""

from pathlib import Path
from typing import Any

import msgspec

from frontdesk.agents.acp import prompts
from frontdesk.agents.acp.options import AcpOptions
from frontdesk.agents.acp.wire import Lost, Wire, fields, items
from frontdesk.formats import quoting
from frontdesk.logs import get_logger
from frontdesk.model import events

log = get_logger(__name__)

PROTOCOL = 1
NOT_OFFERED = "it does not offer the model {model}; /model default goes back to its own"
HELLO = {
    "protocolVersion": PROTOCOL,
    "clientCapabilities": {"fs": {"readTextFile": False, "writeTextFile": False}, "terminal": False},
    "clientInfo": {"name": "frontdesk", "title": "frontdesk", "version": "1"},
}


class Memory(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of an agent's session when its process is gone."""

    agent_session: str
    cwd: str
    seen: prompts.Seen


class AcpSession:
    """A running agent; `settled` when it is between two turns and can take another."""

    def __init__(self, wire: Wire, cwd: str) -> None:
        self.wire = wire
        self.cwd = cwd
        self.settled = False
        self.agent_session = ""
        self.seen = prompts.Seen()
        self.cost_usd: float | None = 0.0
        """What the session cost so far; None when that is unknown."""
        self._abilities: dict[str, Any] | None = None
        self._system = ""
        self._model: dict[str, Any] = {}
        self._usual_model: object = None

    @classmethod
    async def start(cls, options: AcpOptions, cwd: str) -> "AcpSession":
        """Start a process. Lost when that cannot be done."""
        _check_folder(cwd)
        try:
            process = await options.start(cwd)
        except OSError as error:
            detail = f"{options.command[0]!r}, {error.strerror}"
            raise Lost("it cannot be started", detail=detail) from error
        return cls(Wire(process, options), cwd)

    @property
    def memory(self) -> Memory:
        return Memory(agent_session=self.agent_session, cwd=self.cwd, seen=self.seen)

    async def prepare(
        self, turn: events.Assignment, memory: Memory | None, characters: int
    ) -> list[prompts.Block]:
        """Have a session that knows the conversation as far as possible; gives what to tell it."""
        abilities = await self._greeted()
        # A turn that is tried again begins a new session: who knows what it did in the one before.
        goes_on = bool(self.agent_session) and turn.attempt == 1
        goes_on = goes_on and prompts.unseen(turn, self.seen) is not None
        if not goes_on and not await self._loaded(turn, memory):
            begun = await self.wire.request("session/new", {"cwd": self.cwd, "mcpServers": []})
            name = begun.get("sessionId")
            if not isinstance(name, str) or not name:
                raise Lost("it gave no id for the new session")
            self.agent_session, self.seen, self.cost_usd, self._system = name, prompts.Seen(), 0.0, ""
            self._note_model(begun)
        await self._choose_model(turn)
        earlier = prompts.unseen(turn, self.seen) or ()
        system = "" if turn.system == self._system else turn.system
        self._system = turn.system
        before = prompts.preamble(turn, earlier, system, characters)
        told = prompts.blocks(turn.input, fields(abilities.get("promptCapabilities")))
        return [prompts.text_block(before), *told] if before else told

    async def _greeted(self) -> dict[str, Any]:
        """What the agent can do, as it says when it is greeted."""
        if self._abilities is None:
            hello = await self.wire.request("initialize", HELLO)
            if hello.get("protocolVersion") != PROTOCOL:
                spoken = quoting.quote(str(hello.get("protocolVersion")))
                raise Lost(f"it speaks another version of ACP than {PROTOCOL}", detail=spoken)
            self._abilities = fields(hello.get("agentCapabilities"))
        return self._abilities

    async def _loaded(self, turn: events.Assignment, memory: Memory | None) -> bool:
        loads = self._abilities is not None and self._abilities.get("loadSession") is True
        if not loads or self.agent_session or memory is None or turn.attempt > 1:
            return False
        if memory.cwd != self.cwd or prompts.unseen(turn, memory.seen) is None:
            return False
        params = {"sessionId": memory.agent_session, "cwd": self.cwd, "mcpServers": []}
        try:
            self._note_model(await self.wire.request("session/load", params))
        except Lost as lost:
            if self.wire.lost:
                raise
            log.info("agent_session_not_loaded", why=str(lost))
            return False
        self.agent_session, self.seen, self.cost_usd = memory.agent_session, memory.seen, None
        return True

    def _note_model(self, begun: dict[str, Any]) -> None:
        choices = items(begun.get("configOptions"))
        self._model = next((choice for choice in choices if choice.get("category") == "model"), {})
        self._usual_model = self._model.get("currentValue")

    async def _choose_model(self, turn: events.Assignment) -> None:
        """Take the model that the session chose; Lost when the agent does not offer it."""
        chosen = (turn.model or {}).get("model")
        wanted = chosen or self._usual_model
        if wanted is None or wanted == self._model.get("currentValue"):
            return
        offered = _values(self._model.get("options"))
        if wanted not in offered and chosen:
            raise Lost(NOT_OFFERED.format(model=quoting.quote(chosen)), detail=f"it offers {offered}")
        if wanted not in offered:
            return
        params = {"sessionId": self.agent_session, "configId": self._model.get("id"), "value": wanted}
        await self.wire.request("session/set_config_option", params)
        self._model = self._model | {"currentValue": wanted}


def _check_folder(cwd: str) -> None:
    if not Path(cwd).is_dir():
        raise Lost("there is no folder to work in", detail=repr(cwd))


def _values(options: object) -> list[object]:
    """The values that can be chosen, those in groups included."""
    found: list[object] = []
    for option in items(options):
        found += _values(option["options"]) if "options" in option else [option.get("value")]
    return found
