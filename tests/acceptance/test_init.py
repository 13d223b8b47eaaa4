"""``frontdesk init`` writes what works, and ``doctor`` tries what ``run`` will need."""

import json
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests import loopback
from tests.acceptance import program
from tests.acceptance.test_run import findings

KEY = "sk-hunter2"


class Endpoint:
    """Lists models, to whoever has the key."""

    def __init__(self) -> None:
        self.names = ["text-embedding-1", "llama3.2:latest", "qwen3"]
        self.status = 200
        self.asked: list[str | None] = []
        endpoint = self

        class Handler(loopback.Quiet):
            def do_GET(self) -> None:
                endpoint.asked.append(self.headers.get("authorization"))
                body = json.dumps({"object": "list", "data": [{"id": name} for name in endpoint.names]})
                self.send_response(endpoint.status if self.path == "/v1/models" else 404)
                self.send_header("content-type", "application/json")
                self.end_headers()
                self.wfile.write(body.encode())

        self.handler = Handler


@pytest.fixture
def endpoint() -> Iterator[tuple[Endpoint, str]]:
    made = Endpoint()
    with loopback.served_by(made.handler) as address:
        yield made, address


def written(home: Path) -> dict[str, Any]:
    file = home / ".frontdesk" / "frontdesk.toml"
    agent: dict[str, Any] = tomllib.loads(file.read_text())["agent"]
    return agent


def test_file_explains_itself_with_commands_and_not_with_pages_that_a_package_lacks(tmp_path: Path) -> None:
    text = program.run(tmp_path, "init", "--print", "--offline").stdout
    named = re.findall(r"`frontdesk ([a-z ]+)`", text)
    assert "config reference" in named
    assert all(program.run(tmp_path, *command.split(), "--help").returncode == 0 for command in named)
    assert ".md" not in text


@pytest.mark.parametrize("variable", ["OLLAMA_HOST", "OPENAI_BASE_URL"])
def test_endpoint_is_asked_for_its_models(
    tmp_path: Path, endpoint: tuple[Endpoint, str], variable: str
) -> None:
    _, address = endpoint
    where = {variable: address if variable == "OLLAMA_HOST" else f"{address}/v1"}
    done = program.run(tmp_path, "init", **where)
    assert done.returncode == 0, done.stderr
    assert "Next: frontdesk run" in done.stdout
    assert written(tmp_path) == {"driver": "openai", "base_url": f"{address}/v1", "model": "llama3.2:latest"}
    assert program.run(tmp_path, "config", "check").returncode == 0
    assert findings(program.run(tmp_path, "doctor", "--json"))["agent"] == ("ok", "openai")


def test_key_is_shown_to_the_endpoint_and_not_written(tmp_path: Path, endpoint: tuple[Endpoint, str]) -> None:
    server, address = endpoint
    done = program.run(tmp_path, "init", OPENAI_BASE_URL=f"{address}/v1", OPENAI_API_KEY=KEY)
    assert done.returncode == 0, done.stderr
    assert set(server.asked) == {f"Bearer {KEY}"}
    assert written(tmp_path)["api_key_env"] == "OPENAI_API_KEY"
    assert KEY not in (tmp_path / ".frontdesk" / "frontdesk.toml").read_text() + done.stdout + done.stderr


@pytest.mark.parametrize("names", [[], ["text-embedding-1"]])
def test_endpoint_without_models_is_not_chosen(
    tmp_path: Path, endpoint: tuple[Endpoint, str], names: list[str]
) -> None:
    server, address = endpoint
    server.names = names
    done = program.run(tmp_path, "init", OLLAMA_HOST=address)
    assert written(tmp_path)["driver"] == "local"
    assert "agent.model" in done.stderr
    assert program.run(tmp_path, "config", "check").returncode == 0


def test_endpoint_that_does_not_answer_is_not_chosen_without_a_model(tmp_path: Path) -> None:
    done = program.run(tmp_path, "init", OLLAMA_HOST="http://127.0.0.1:1")
    assert written(tmp_path)["driver"] == "local"
    assert "127.0.0.1:1" in done.stderr
    assert "does not answer" in done.stderr


def test_endpoint_that_does_not_answer_is_kept_in_a_comment(tmp_path: Path) -> None:
    where = {"OPENAI_BASE_URL": "http://127.0.0.1:1/v1", "OPENAI_MODEL": "qwen3"}
    with_local = program.run(tmp_path, "init", **where)
    assert written(tmp_path)["driver"] == "local"
    assert "does not answer" in with_local.stderr
    assert "# model = " in (tmp_path / ".frontdesk" / "frontdesk.toml").read_text()


def test_endpoint_that_refuses_the_key_is_named(tmp_path: Path, endpoint: tuple[Endpoint, str]) -> None:
    server, address = endpoint
    server.status = 401
    done = program.run(tmp_path, "init", OPENAI_BASE_URL=f"{address}/v1", OPENAI_API_KEY=KEY)
    assert "credentials" in done.stderr
    assert written(tmp_path)["driver"] == "local"
    assert KEY not in done.stdout + done.stderr


def test_package_that_is_missing_is_named(tmp_path: Path) -> None:
    done = program.run(tmp_path, "init", ANTHROPIC_API_KEY=KEY)
    assert "pip install 'pydantic-ai-slim[anthropic]'" in done.stderr
    assert written(tmp_path)["driver"] == "local"
    text = (tmp_path / ".frontdesk" / "frontdesk.toml").read_text()
    assert "# # " in text
    assert "anthropic:" in text
    assert program.run(tmp_path, "config", "check").returncode == 0


def configure(home: Path, text: str) -> None:
    folder = home / ".frontdesk"
    folder.mkdir(exist_ok=True)
    (folder / "frontdesk.toml").write_text(text)


def examined(home: Path, agent: str, **environment: str) -> tuple[str, str]:
    configure(home, f"[agent]\n{agent}\n[confirm]\nport = 0\n")
    return findings(program.run(home, "doctor", "--json", **environment))["agent"]


def test_doctor_asks_the_endpoint(tmp_path: Path, endpoint: tuple[Endpoint, str]) -> None:
    server, address = endpoint
    agent = f'driver = "openai"\nbase_url = "{address}/v1"\nmodel = "{{}}"'
    assert examined(tmp_path, agent.format("llama3.2")) == ("ok", "openai")
    verdict, text = examined(tmp_path, agent.format("gpt-9"))
    assert (verdict, "llama3.2:latest" in text) == ("warning", True)
    server.status = 401
    verdict, text = examined(tmp_path, agent.format("qwen3"))
    assert (verdict, "credentials" in text) == ("failed", True)
    verdict, text = examined(tmp_path, 'driver = "openai"\nbase_url = "http://127.0.0.1:1"\nmodel = "m"')
    assert (verdict, "does not answer" in text) == ("failed", True)


def test_doctor_names_the_package_of_a_provider(tmp_path: Path) -> None:
    agent = 'driver = "pydantic_ai"\nmodel = "anthropic:claude-haiku-4-5"\napi_key_env = "THE_KEY"'
    verdict, text = examined(tmp_path, agent, THE_KEY=KEY)
    assert (verdict, "pip install 'pydantic-ai-slim[anthropic]'" in text) == ("failed", True)


def test_doctor_starts_the_program(tmp_path: Path) -> None:
    failing = 'driver = "command"\ncommand = ["/bin/sh", "-c", "echo no >&2; exit 3"]'
    verdict, text = examined(tmp_path, failing)
    assert (verdict, "exit code 3" in text, text.endswith(": no")) == ("failed", True, True)
    assert examined(tmp_path, 'driver = "command"\ncommand = ["cat"]') == ("ok", "command")


def test_doctor_writes_to_the_store(tmp_path: Path) -> None:
    configure(tmp_path, '[agent]\ndriver = "scripted"\n')
    assert findings(program.run(tmp_path, "doctor", "--json"))["store"][0] == "ok"
    database = tmp_path / ".frontdesk" / "state.db"
    database.write_bytes(database.read_bytes()[: 4096 * 3])
    verdict, text = findings(program.run(tmp_path, "doctor", "--json"))["store"]
    assert (verdict, "damaged" in text) == ("failed", True)
