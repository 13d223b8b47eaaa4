"""``python acp_agent.py FOLDER [WORD…]``: an agent on the official SDK that does what it is told.

Its sessions are files in the folder. The word ``sign-in`` lets it want a login.
"""

import asyncio
import json
import os
import sys
import uuid
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import acp
from acp import schema
from acp.helpers import (
    start_tool_call,
    text_block,
    tool_content,
    tool_diff_content,
    update_agent_message_text,
    update_agent_thought_text,
    update_tool_call,
)

MODELS = ["small", "large"]


class Agent:
    """Every command is a method; anything else is said back."""

    client: Any

    def __init__(self, folder: Path, words: list[str]) -> None:
        self._folder = folder
        self._words = words
        self._prompts: dict[str, list[list[str]]] = {}
        self._cancelled = asyncio.Event()
        self._model = MODELS[0]
        self._spent = 0.0
        self._loaded = False

    def on_connect(self, client: Any) -> None:
        self.client = client

    async def initialize(self, protocol_version: int, **_: Any) -> schema.InitializeResponse:
        return schema.InitializeResponse(
            protocol_version=protocol_version,
            agent_capabilities=schema.AgentCapabilities(
                load_session=True, prompt_capabilities=schema.PromptCapabilities(image=True)
            ),
        )

    async def new_session(self, cwd: str, **_: Any) -> schema.NewSessionResponse:
        if "sign-in" in self._words:
            raise acp.RequestError.auth_required()
        session = uuid.uuid4().hex
        self._prompts[session] = []
        return schema.NewSessionResponse(session_id=session, config_options=[self._models()])

    async def load_session(self, cwd: str, session_id: str, **_: Any) -> schema.LoadSessionResponse:
        file = self._folder / session_id
        if not file.exists():
            raise acp.RequestError.invalid_params({"sessionId": "unknown"})
        self._prompts[session_id] = json.loads(file.read_text(encoding="utf-8"))
        self._loaded = True
        await self.say(session_id, "This was said long ago.")
        return schema.LoadSessionResponse(config_options=[self._models()])

    async def set_config_option(
        self, config_id: str, session_id: str, value: str | bool, **_: Any
    ) -> schema.SetSessionConfigOptionResponse:
        self._model = str(value)
        return schema.SetSessionConfigOptionResponse(config_options=[self._models()])

    def _models(self) -> Any:
        options = [schema.SessionConfigSelectOption(value=model, name=model) for model in MODELS]
        return schema.SessionConfigOptionSelect(
            id="model",
            name="Model",
            category="model",
            type="select",
            current_value=self._model,
            options=options,
        )

    async def cancel(self, session_id: str, **_: Any) -> None:
        self._cancelled.set()

    async def prompt(self, session_id: str, prompt: list[Any], **_: Any) -> schema.PromptResponse:
        self._cancelled.clear()
        texts = [getattr(block, "text", block.type) for block in prompt]
        known = self._prompts[session_id]
        known.append(texts)
        (self._folder / session_id).write_text(json.dumps(known), encoding="utf-8")
        commands: dict[str, Callable[[str], Awaitable[schema.PromptResponse | None]]] = {
            name.removeprefix("do_"): getattr(self, name) for name in dir(self) if name.startswith("do_")
        }
        command = commands.get(texts[-1].replace(" ", "_"))
        if command is None:
            await self.say(session_id, texts[-1])
            return schema.PromptResponse(stop_reason="end_turn")
        response = await command(session_id)
        return response or schema.PromptResponse(stop_reason="end_turn")

    async def say(self, session: str, text: str) -> None:
        await self.client.session_update(session_id=session, update=update_agent_message_text(text))

    async def do_report(self, session: str) -> None:
        known = self._prompts[session]
        report = {
            "pid": os.getpid(),
            "session": session,
            "prompts": known,
            "loaded": self._loaded,
            "model": self._model,
        }
        await self.say(session, json.dumps(report))

    async def do_think(self, session: str) -> None:
        for thought in ("Let me ", "think."):
            await self.client.session_update(session_id=session, update=update_agent_thought_text(thought))
        await self.say(session, "Yes.")

    async def do_tools(self, session: str) -> None:
        await self.say(session, "Reading. ")
        for update in (
            start_tool_call("1", "Read notes", kind="read", status="pending", raw_input={"path": "notes"}),
            update_tool_call("1", status="in_progress"),
            update_tool_call("1", status="completed", content=[tool_content(text_block("buy milk"))]),
            update_tool_call("1", status="completed"),
            start_tool_call("2", "Run tests", kind="execute", status="in_progress"),
            update_tool_call("2", status="failed", raw_output={"code": 1}),
        ):
            await self.client.session_update(session_id=session, update=update)
        await self.say(session, "Buy milk.")

    async def do_messages(self, session: str) -> None:
        for message, text in (("m1", "One"), ("m1", "."), ("m2", "Two.")):
            update = update_agent_message_text(text)
            update.message_id = message
            await self.client.session_update(session_id=session, update=update)

    async def do_permission(self, session: str) -> None:
        await self._ask(session, ["allow_always", "allow_once", "reject_once", "reject_always"])

    async def do_permission_for_ever(self, session: str) -> None:
        await self._ask(session, ["allow_always", "reject_always"])

    async def _ask(self, session: str, kinds: list[Any]) -> None:
        call = start_tool_call(
            "7",
            "Change notes",
            kind="edit",
            status="pending",
            raw_input={"path": "notes"},
            content=[tool_diff_content("notes", "new words", "old words")],
        )
        await self.client.session_update(session_id=session, update=call)
        answer = await self.client.request_permission(
            session_id=session,
            tool_call=schema.ToolCallUpdate(tool_call_id="7"),
            options=[
                schema.PermissionOption(option_id=f"option {kind}", name=kind, kind=kind) for kind in kinds
            ],
        )
        await self.say(session, json.dumps(answer.outcome.model_dump(mode="json")))

    async def do_files(self, session: str) -> None:
        tries = (
            self.client.read_text_file(session_id=session, path="/etc/passwd"),
            self.client.write_text_file(session_id=session, path="/tmp/x", content=""),
            self.client.create_terminal(session_id=session, command="id"),
        )
        for attempt in tries:
            try:
                await attempt
                await self.say(session, "allowed ")
            except acp.RequestError as error:
                await self.say(session, f"{error.code} ")

    async def do_wait(self, session: str) -> schema.PromptResponse:
        await self.say(session, "waiting")
        await self._cancelled.wait()
        await self.say(session, " no more")
        return schema.PromptResponse(stop_reason="cancelled")

    async def do_nothing(self, session: str) -> schema.PromptResponse:
        return schema.PromptResponse(stop_reason="end_turn", field_meta={"frontdesk/silent": True})

    async def do_refuse(self, session: str) -> None:
        raise acp.RequestError.invalid_params({"why": "no"})

    async def do_spend(self, session: str) -> schema.PromptResponse:
        self._spent += 0.25
        cost = schema.Cost(amount=self._spent, currency="USD")
        update = schema.UsageUpdate(session_update="usage_update", used=1200, size=200_000, cost=cost)
        await self.client.session_update(session_id=session, update=update)
        usage = schema.Usage(total_tokens=30, input_tokens=20, output_tokens=10, cached_read_tokens=5)
        return schema.PromptResponse(stop_reason="max_tokens", usage=usage)


if __name__ == "__main__":
    asyncio.run(acp.run_agent(Agent(Path(sys.argv[1]), sys.argv[2:]), use_unstable_protocol=True))  # type: ignore[arg-type]
