"""Programs that speak the OpenAI API, unchanged, against a running gateway: the openai library, and llm."""

import asyncio
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import openai
import pytest

from tests.acceptance import program
from tests.patience import until

TOKENS = {"ANN_TOKEN": "open-sesame-says-ann", "BOB_TOKEN": "open-sesame-says-bob"}
TWO = ("ann", "bob")
CONFIGURATION = """
[agent]
driver = "scripted"

[server]
port = 0

[channels.api_server.tokens_env]
ann = "ANN_TOKEN"
bob = "BOB_TOKEN"
"""
MODELS = """
- model_id: desk
  model_name: frontdesk
  api_base: {url}
  api_key_name: desk
  responses: true
- model_id: chat
  model_name: frontdesk
  api_base: {url}
  api_key_name: desk
- model_id: work
  model_name: frontdesk
  api_base: {url}
  api_key_name: desk
  responses: true
  headers:
    X-Frontdesk-Session: work
"""
TALK = """
import asyncio, llm
for name, stream in (("desk", True), ("desk", False), ("chat", True)):
    talk = llm.get_model(name).conversation()
    for words in ("one", "!show messages"):
        print(talk.prompt(words, stream=stream).text())
for words in ("one", "!show messages"):
    print(llm.get_model("work").prompt(words).text())
async def ask():
    print(await llm.get_async_model("desk").prompt("three").text())
asyncio.run(ask())
"""
LLM_SECONDS = 2 * program.PATIENCE_SECONDS
"""It takes seconds to start, on a machine that has nothing else to do."""
LLM = Path(sys.executable).with_name("llm")


@contextmanager
def serving(home: Path) -> Iterator[tuple[subprocess.Popen[bytes], str]]:
    """A running gateway and the address of its API."""
    folder = home / ".frontdesk"
    folder.mkdir(exist_ok=True)
    (folder / "frontdesk.toml").write_text(CONFIGURATION)
    ann, bob = TOKENS.values()
    with program.start(home, "run", "--log-level", "warning", ANN_TOKEN=ann, BOB_TOKEN=bob) as process:
        text = program.read_until(process, "agent is")
        found = re.search(r"http://[\d.:]+", text)
        assert found, text
        with program.drained(process, home / "written"):
            yield process, f"{found[0]}/v1"


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("gateway")


@pytest.fixture(scope="module")
def url(home: Path) -> Iterator[str]:
    with serving(home) as (_, url):
        yield url


def client_at(url: str, user: str = "ANN_TOKEN") -> openai.OpenAI:
    return client_with(url, TOKENS[user])


def client_with(url: str, token: str) -> openai.OpenAI:
    return openai.OpenAI(base_url=url, api_key=token, timeout=program.PATIENCE_SECONDS)


def test_openai_client_creates_streams_retrieves_and_goes_on(url: str) -> None:
    with client_at(url) as client:
        one = client.responses.create(model="frontdesk", input="one")
        with client.responses.create(
            model="frontdesk", input="!stream 3", previous_response_id=one.id, stream=True
        ) as stream:
            seen = list(stream)
        said = "".join(event.delta for event in seen if event.type == "response.output_text.delta")
        last = seen[-1]
        assert last.type == "response.completed"
        again = client.responses.retrieve(last.response.id)
        (asked,) = client.responses.input_items.list(one.id)
        assert asked.type == "message"
        assert [part.text for part in asked.content if part.type == "input_text"] == ["one"]
        with pytest.raises(openai.APIStatusError, match="405"):
            client.responses.delete(one.id)
        for unsupported in (
            client.conversations.create,
            lambda: client.conversations.retrieve("work"),
            lambda: client.conversations.delete("work"),
            lambda: client.conversations.items.list("work"),
        ):
            with pytest.raises(openai.BadRequestError) as refused:
                unsupported()
            assert refused.value.code == "unsupported_operation"
        assert one.conversation
        counted = client.responses.create(
            model="frontdesk", input="!show messages", conversation=one.conversation.id
        )
        models = [model.id for model in client.models.list()]
        found = client.models.retrieve("frontdesk")
    assert (one.status, one.output_text) == ("completed", "echo: one")
    assert said.split() == last.response.output_text.split() == again.output_text.split() == ["1", "2", "3"]
    assert (again.previous_response_id, again.created_at) == (one.id, last.response.created_at)
    assert counted.output_text == "messages: 5"
    assert ([found.id], found.object) == (models, "model")


def token_of(home: Path, *given: str) -> str:
    """One that the gateway gives out."""
    told = program.run(home, "token", "add", *given, "--json")
    assert told.returncode == 0, told.stderr
    return str(json.loads(told.stdout)["token"])


def test_token_of_a_person_is_a_key_for_them_alone(url: str, home: Path) -> None:
    anns, bobs = (token_of(home, f"{who}-key", "--role", "user", "--person", f"matrix:{who}") for who in TWO)
    looks = token_of(home, "wall", "--role", "viewer")
    with client_with(url, anns) as ann, client_with(url, bobs) as bob:
        one = ann.responses.create(model="frontdesk", input="one")
        assert one.output_text == "echo: one"
        assert ann.responses.retrieve(one.id).id == one.id
        for client, count in ((ann, 1), (bob, 1), (ann, 3)):
            told = client.chat.completions.create(
                model="frontdesk",
                messages=[{"role": "user", "content": "!show messages"}],
                extra_headers={"X-Frontdesk-Session": "work"},
            )
            assert told.choices[0].message.content == f"messages: {count}"
        with client_at(url) as other:
            for client in (bob, other):
                with pytest.raises(openai.NotFoundError):
                    client.responses.retrieve(one.id)
    headers = {"authorization": f"Bearer {anns}"}
    listed = httpx.get(url.replace("/v1", "/api/v1/sessions"), headers=headers, trust_env=False, timeout=60)
    assert len(listed.json()["items"]) == 2, "they see on the page what they said through the API"
    with client_with(url, looks) as wall, pytest.raises(openai.PermissionDeniedError):
        wall.responses.create(model="frontdesk", input="no")
    assert program.run(home, "token", "revoke", "ann-key").returncode == 0
    with client_with(url, anns) as ended, pytest.raises(openai.AuthenticationError):
        ended.models.list()


def test_nobody_gets_at_what_is_another_persons(url: str) -> None:
    with client_at(url) as ann, client_at(url, "BOB_TOKEN") as bob:
        anns = ann.responses.create(model="frontdesk", input="a secret")
        assert anns.conversation
        for told in (anns.id, "resp_t_0000000000000000"):
            with pytest.raises(openai.NotFoundError):
                bob.responses.retrieve(told)
            with pytest.raises(openai.NotFoundError):
                bob.responses.cancel(told)
            with pytest.raises(openai.NotFoundError):
                bob.responses.input_items.list(told)
            with pytest.raises(openai.NotFoundError):
                bob.responses.create(model="frontdesk", input="and?", previous_response_id=told)
        with pytest.raises(openai.NotFoundError):
            bob.responses.create(model="frontdesk", input="and?", conversation=anns.conversation.id)
        with pytest.raises(openai.NotFoundError):
            bob.models.retrieve("ann")


async def test_programs_that_go_on_from_one_response_at_once_do_not_hear_each_other(url: str) -> None:
    async with openai.AsyncOpenAI(
        base_url=url, api_key=TOKENS["ANN_TOKEN"], timeout=program.PATIENCE_SECONDS
    ) as client:
        one = await client.responses.create(model="frontdesk", input="one")
        forks = await asyncio.gather(
            *(
                client.responses.create(
                    model="frontdesk", input="!show messages", previous_response_id=one.id
                )
                for _ in range(5)
            )
        )
        stream = await client.responses.create(
            model="frontdesk", input="!show messages", previous_response_id=forks[-1].id, stream=True
        )
        last = [event async for event in stream][-1]
    assert {fork.output_text for fork in forks} == {"messages: 3"}
    places = [fork.conversation and fork.conversation.id for fork in forks]
    assert len(set(places)) == len(places)
    assert one.conversation
    assert places.count(one.conversation.id) == 1
    assert last.type == "response.completed"
    assert last.response.output_text == "messages: 5"


def test_response_outlives_its_client_and_the_gateway(tmp_path: Path) -> None:
    with serving(tmp_path) as (process, url), client_at(url) as client:
        begun = client.responses.create(
            model="frontdesk", input="!hang 1; done", background=True, metadata={"for": "later"}
        )
        until(lambda: client.responses.retrieve(begun.id).status == "in_progress")
        process.kill()
    with serving(tmp_path) as (_, url), client_at(url) as client:
        until(lambda: client.responses.retrieve(begun.id).status == "completed")
        ended = client.responses.retrieve(begun.id)
        on = client.responses.create(model="frontdesk", input="!show messages", previous_response_id=begun.id)
    assert (ended.output_text, ended.metadata, ended.id) == ("echo: done", {"for": "later"}, begun.id)
    assert on.output_text == "messages: 3"


def test_running_response_is_cancelled(url: str) -> None:
    with client_at(url) as client:
        begun = client.responses.create(model="frontdesk", input="!hang", background=True)
        until(lambda: client.responses.retrieve(begun.id).status == "in_progress")
        assert client.responses.cancel(begun.id).id == begun.id
        until(lambda: client.responses.retrieve(begun.id).status == "cancelled")


def told_by(home: Path, *arguments: str | Path) -> str:
    """What a program with llm says; plug-ins of others are left out."""
    given = {"LLM_USER_PATH": str(home), "LLM_LOAD_PLUGINS": "", "HOME": str(home)}
    done = subprocess.run(
        arguments,
        env={"PATH": os.environ["PATH"], "LANG": "C.UTF-8", **given},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=LLM_SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_llm_talks_to_both_addresses_and_goes_on(url: str, tmp_path: Path) -> None:
    (tmp_path / "extra-openai-models.yaml").write_text(MODELS.format(url=url))
    (tmp_path / "keys.json").write_text(f'{{"desk": "{TOKENS["BOB_TOKEN"]}"}}')
    assert told_by(tmp_path, LLM, "-m", "desk", "-s", "Be brief.", "hello") == "echo: hello\n"
    talked = told_by(tmp_path, sys.executable, "-c", TALK).splitlines()
    assert talked == ["echo: one", "messages: 3"] * 3 + ["echo: one", "messages: 3"] + ["echo: three"]
