"""Agents of other makers behind the whole gateway."""

import sys
from pathlib import Path

from frontdesk.agents import acp, command, pydantic_ai
from frontdesk.model import turns
from tests.flow.harness import open_house

ROOT = Path(__file__).parents[2]
ACP_AGENT = ROOT / "tests" / "integration" / "acp_agent.py"
COMMAND_AGENT = ROOT / "examples" / "command_agent.py"


async def test_acp_agent_process_keeps_its_session_from_turn_to_turn(store_url: str, tmp_path: Path) -> None:
    program = (sys.executable, "-X", "utf8", str(ACP_AGENT), str(tmp_path))
    async with open_house(store_url, agent=acp.Driver(acp.Options(command=program))) as house:
        first = await house.ask("hello")
        assert "hello" in first
        assert "again" in await house.ask("again")
        roles = [row["role"] for row in await house.transcript()]
        assert roles == ["user", "assistant", "user", "assistant"]


async def test_pydantic_ai_agent_answers_and_its_tool_calls_are_kept(store_url: str) -> None:
    agent = pydantic_ai.Driver(pydantic_ai.Options(target="tests.flow.weather:agent"))
    async with open_house(store_url, agent=agent) as house:
        receipt = await house.say("What is the weather in Bergen?")
        assert (await house.finished(receipt.turn_id)).state is turns.TurnState.DONE
        rows = await house.transcript()
        assert [row["role"] for row in rows] == ["user", "assistant", "tool", "assistant"]
        assert "rain" in rows[2]["content"]
        entry = await house.sessions.get_session(await house.key())
        assert entry is not None
        assert entry.input_tokens > 0
        assert len(await house.notebook.wait_for(1)) == 1


async def test_command_agent_of_the_documentation_answers(store_url: str) -> None:
    agent = command.Driver(command.Options(command=(sys.executable, str(COMMAND_AGENT))))
    async with open_house(store_url, agent=agent) as house:
        assert await house.ask("hello")
        assert len(await house.transcript()) >= 2
