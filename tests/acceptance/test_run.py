"""``frontdesk run``, ``init`` and ``doctor`` as a user starts them."""

import http.client
import json
import re
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import openai
import pytest

from frontdesk.formats import webhooks
from tests import loopback
from tests.acceptance import program
from tests.patience import until

SECRET = "a secret of the laboratory"
TOKEN = "sesame-sesame-sesame-open"
CONFIGURATION = """
[agent]
driver = "scripted"

[server]
port = 0

[gateway]
drain_seconds = 30

[channels.webhook.shop]
secret_env = "SHOP_SECRET"
callback_url = "{callback}"

[channels.api_server.tokens_env]
ann = "ANN_TOKEN"
"""

UNCONFIGURED = {
    "aiohttp",
    "aiosmtplib",
    "asyncpg",
    "discord",
    "httpx",
    "imap_tools",
    "jinja2",
    "markdown_it",
    "mautrix",
    "slack_sdk",
    "telegram",
    "wcwidth",
}
"""Libraries that only some channels, stores, pages and long texts need."""


class Receiver:
    """Takes callbacks and keeps them."""

    def __init__(self) -> None:
        self.got: list[dict[str, Any]] = []
        self.arrived = threading.Condition()
        receiver = self

        class Handler(loopback.Quiet):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                said = json.loads(body) | {"id": self.headers["webhook-id"]}
                self.send_response(receiver.status_of(said))
                self.end_headers()
                with receiver.arrived:
                    receiver.got.append(said)
                    receiver.arrived.notify_all()

        self._handler = Handler
        self.url = ""

    @contextmanager
    def serving(self) -> Iterator["Receiver"]:
        with loopback.served_by(self._handler) as address:
            self.url = f"{address}/"
            yield self

    def status_of(self, said: dict[str, Any]) -> int:
        """How a callback is answered."""
        return 204

    def wait_for(self, count: int) -> list[str]:
        with self.arrived:
            assert self.arrived.wait_for(lambda: len(self.got) >= count, program.PATIENCE_SECONDS)
            return [each["text"] for each in self.got]


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver().serving() as receiver:
        yield receiver


@contextmanager
def gateway(home: Path, receiver: Receiver, more: str = "") -> Iterator[tuple[subprocess.Popen[bytes], str]]:
    """A running gateway and its address."""
    folder = home / ".frontdesk"
    folder.mkdir(exist_ok=True)
    (folder / "frontdesk.toml").write_text(CONFIGURATION.format(callback=receiver.url) + more)
    arguments = ("run", "--log-level", "warning")
    with program.start(home, *arguments, SHOP_SECRET=SECRET, ANN_TOKEN=TOKEN) as process:
        text = program.read_until(process, "agent is")
        found = re.search(r"http://[\d.:]+", text)
        assert found, text
        yield process, found[0]


def post(url: str, event_id: str, text: str, *, secret: str = SECRET) -> int:
    body = json.dumps({"id": event_id, "chat_id": "c1", "user_id": "u1", "text": text}).encode()
    headers = webhooks.signed_headers(secret, event_id, datetime.now(UTC), body)
    status, _ = request(url, "POST", "/channels/webhook/shop", body, dict(headers))
    return status


def request(
    url: str, method: str, path: str, body: bytes = b"", headers: dict[str, str] | None = None
) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=program.PATIENCE_SECONDS)
    connection.request(method, path, body, headers or {})
    response = connection.getresponse()
    content = response.read()
    connection.close()
    return response.status, content


def test_webhook_is_answered_at_the_callback(tmp_path: Path, receiver: Receiver) -> None:
    with gateway(tmp_path, receiver) as (_, url):
        assert post(url, "e1", "hello") == 202
        assert post(url, "e1", "hello") == 200
        assert receiver.wait_for(1) == ["echo: hello"]
        assert post(url, "e2", "again", secret="another secret, a wrong one") == 401
    assert [each["in_reply_to"] for each in receiver.got] == ["e1"]


def test_openai_client_talks_to_the_endpoint(tmp_path: Path, receiver: Receiver) -> None:
    with (
        gateway(tmp_path, receiver) as (_, url),
        openai.OpenAI(base_url=f"{url}/v1", api_key=TOKEN) as client,
    ):
        ask = client.chat.completions.create
        whole = ask(model="frontdesk", messages=[{"role": "user", "content": "hello"}])
        assert whole.choices[0].message.content == "echo: hello"
        with ask(model="any", messages=[{"role": "user", "content": "!stream 3"}], stream=True) as stream:
            pieces = [chunk.choices[0].delta.content for chunk in stream if chunk.choices]
        assert "".join(filter(None, pieces)).split() == ["1", "2", "3"]


HOOK = """
[hooks]
on_session_start = {command}
on_session_finalize = {command}
"""


def test_hook_commands_are_run_and_told_again_once_they_can_be_started(
    tmp_path: Path, receiver: Receiver
) -> None:
    told, hook = tmp_path / "told", tmp_path / "hook"
    command = json.dumps([str(hook)])
    with gateway(tmp_path, receiver, HOOK.format(command=command)) as (_, url):
        assert post(url, "e1", "hello") == 202
        assert receiver.wait_for(1) == ["echo: hello"]
        hook.write_text(f"#!/bin/sh\ncat >>{told}; echo >>{told}\n")
        hook.chmod(0o700)
        assert post(url, "e2", "/new") == 202
        assert receiver.wait_for(2)[1].startswith("This is a new conversation")
        until(lambda: told.exists() and told.read_text().count("\n") == 2)
    heard = {each["event"]: each for each in map(json.loads, told.read_text().splitlines())}
    assert heard.keys() == {"on_session_start", "on_session_finalize"}
    transcript = heard["on_session_finalize"]["transcript"]
    assert [row["content"] for row in transcript] == ["hello", "echo: hello"]


def test_health_is_told(tmp_path: Path, receiver: Receiver) -> None:
    with gateway(tmp_path, receiver) as (_, url):
        assert request(url, "GET", "/livez")[0] == 200
        assert request(url, "GET", "/readyz")[0] == 200
        assert request(url, "GET", "/nothing")[0] == 404


def wait_until_running(home: Path) -> None:
    """Until a turn has begun: one that only waits stays for the next start."""
    deadline = time.monotonic() + program.PATIENCE_SECONDS
    while '"running":1' not in program.run(home, "status", "--json").stdout.replace(" ", ""):
        assert time.monotonic() < deadline
        time.sleep(0.05)


@pytest.mark.parametrize("order", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_order_to_stop_lets_the_running_turn_finish(
    tmp_path: Path, receiver: Receiver, order: signal.Signals
) -> None:
    with gateway(tmp_path, receiver) as (process, url):
        assert post(url, "e1", "!send origin begun; !sleep 2; done") == 202
        assert receiver.wait_for(1) == ["begun"]
        process.send_signal(order)
        assert process.wait(program.PATIENCE_SECONDS) == 0
    assert receiver.wait_for(2) == ["begun", "echo: done"]


def test_second_signal_ends_the_draining_and_the_turn_goes_on_later(
    tmp_path: Path, receiver: Receiver
) -> None:
    with gateway(tmp_path, receiver) as (process, url):
        assert post(url, "e1", "!hang 1; done") == 202
        wait_until_running(tmp_path)
        process.send_signal(signal.SIGTERM)
        program.read_until(process, "Stopping")
        process.send_signal(signal.SIGTERM)
        assert process.wait(program.PATIENCE_SECONDS) == 0
    with gateway(tmp_path, receiver):
        assert receiver.wait_for(1) == ["echo: done"]


def test_second_gateway_on_the_same_home_is_refused(tmp_path: Path, receiver: Receiver) -> None:
    with gateway(tmp_path, receiver):
        done = program.run(tmp_path, "run", SHOP_SECRET=SECRET, ANN_TOKEN=TOKEN)
        assert done.returncode == 1
        assert "in use by" in done.stderr


def test_home_that_cannot_be_made_is_an_error_in_one_line(tmp_path: Path) -> None:
    home = tmp_path / "leads nowhere"
    home.symlink_to(tmp_path / "nowhere" / "at all")
    done = program.run(tmp_path, "run", FRONTDESK_HOME=str(home))
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert f"The home folder {home} cannot be made: " in done.stderr


def test_missing_secret_is_warned_of_at_the_start(tmp_path: Path, receiver: Receiver) -> None:
    folder = tmp_path / ".frontdesk"
    folder.mkdir()
    (folder / "frontdesk.toml").write_text(CONFIGURATION.format(callback=receiver.url))
    with program.start(tmp_path, "run", "--log-level", "warning", SHOP_SECRET=SECRET) as process:
        text = program.read_until(process, "agent is")
    assert text.count("event=secret_missing") == 1
    assert "ANN_TOKEN" in text
    assert "channels.api_server.tokens_env" in text


def findings(done: subprocess.CompletedProcess[str]) -> dict[str, tuple[str, str]]:
    return {each["check"]: (each["verdict"], each["text"]) for each in json.loads(done.stdout)}


def test_doctor_beside_the_running_gateway_has_no_complaint(tmp_path: Path, receiver: Receiver) -> None:
    with gateway(tmp_path, receiver) as (_, url):
        port = str(urlsplit(url).port)
        done = program.run(
            tmp_path, "doctor", "--json", SHOP_SECRET=SECRET, ANN_TOKEN=TOKEN, FRONTDESK_SERVER_PORT=port
        )
    found = findings(done)
    assert done.returncode == 0, done.stdout
    for check in ("store", "address"):
        assert found[check][0] == "ok"
        assert found[check][1].endswith("in use by the running gateway")


def test_doctor_names_missing_secrets(tmp_path: Path, receiver: Receiver) -> None:
    folder = tmp_path / ".frontdesk"
    folder.mkdir()
    agent = '[agent]\ndriver = "openai"\nmodel = "m"\nbase_url = "http://127.0.0.1:1"\n'
    key = 'api_key_file = "nowhere.key"\n'
    shop = CONFIGURATION.format(callback=receiver.url).partition("[gateway]")[2]
    (folder / "frontdesk.toml").write_text(f"{agent}{key}[gateway]{shop}")
    done = program.run(tmp_path, "doctor", "--json", ANN_TOKEN=TOKEN)
    verdict, text = findings(done)["secrets"]
    assert (done.returncode, verdict) == (1, "failed")
    assert "SHOP_SECRET" in text
    assert "nowhere.key" in text
    assert "ANN_TOKEN" not in text
    weak = program.run(tmp_path, "doctor", "--json", ANN_TOKEN="w42", SHOP_SECRET=SECRET)
    assert "ANN_TOKEN cannot be used: it is shorter than 20 characters" in findings(weak)["secrets"][1]
    (tmp_path / "nowhere.key").write_text("sk-hunter2")
    mended = program.run(tmp_path, "doctor", "--json", ANN_TOKEN=TOKEN, SHOP_SECRET=SECRET)
    assert findings(mended)["secrets"] == ("ok", "all there")
    assert "hunter2" not in mended.stdout


@pytest.mark.parametrize("driver", ["command", "acp"])
def test_doctor_names_a_missing_program(driver: str, tmp_path: Path) -> None:
    folder = tmp_path / ".frontdesk"
    folder.mkdir()

    def examined(command: str) -> tuple[str, str]:
        (folder / "frontdesk.toml").write_text(f'[agent]\ndriver = "{driver}"\ncommand = ["{command}"]\n')
        return findings(program.run(tmp_path, "doctor", "--json"))["agent"]

    for command in ("no-such-agent", "./no-such-agent", "/nowhere/agent"):
        verdict, text = examined(command)
        assert verdict == "failed"
        assert repr(command) in text
    own = tmp_path / "agent"
    own.write_text("#!/bin/sh\n")
    own.chmod(0o700)
    assert [examined(command)[0] for command in ("cat", "./agent", str(own))] == ["ok"] * 3


def test_port_in_use_is_said_before_any_turn_is_begun(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        folder = tmp_path / ".frontdesk"
        folder.mkdir()
        port = taken.getsockname()[1]
        (folder / "frontdesk.toml").write_text(f'[agent]\ndriver = "scripted"\n[server]\nport = {port}\n')
        done = program.run(tmp_path, "run")
    assert done.returncode == 1
    assert str(port) in done.stderr
    assert "gateway_started" not in done.stderr


def test_init_writes_a_file_that_check_accepts(tmp_path: Path) -> None:
    done = program.run(tmp_path, "init")
    assert done.returncode == 0, done.stderr
    file = tmp_path / ".frontdesk" / "frontdesk.toml"
    assert file.stat().st_mode & 0o777 == 0o600
    assert program.run(tmp_path, "config", "check").returncode == 0
    again = program.run(tmp_path, "init")
    assert again.returncode == 1
    assert "--force" in again.stderr


def test_init_offers_what_the_environment_has_and_writes_no_secret(tmp_path: Path) -> None:
    done = program.run(tmp_path, "init", "--print", "--offline", OPENAI_API_KEY="sk-hunter2")
    assert 'api_key_env = "OPENAI_API_KEY"' in done.stdout
    assert "hunter2" not in done.stdout


def test_doctor_says_what_is_wrong(tmp_path: Path) -> None:
    folder = tmp_path / ".frontdesk"
    folder.mkdir()
    (folder / "frontdesk.toml").write_text('[agent]\ndriver = "scripted"\n')
    good = program.run(tmp_path, "doctor", "--json")
    assert good.returncode == 0, good.stdout + good.stderr
    assert {finding["check"] for finding in json.loads(good.stdout)} >= {"store", "agent", "channels"}
    (folder / "frontdesk.toml").write_text('[agent]\ndriver = "scrited"\n')
    bad = program.run(tmp_path, "doctor")
    assert bad.returncode == 1
    assert "scrited" in bad.stdout


def test_gateway_loads_nothing_of_what_is_not_configured(tmp_path: Path) -> None:
    (tmp_path / "frontdesk.toml").write_text('[agent]\ndriver = "scripted"\n[server]\nport = 0\n')
    imports = program.environment(tmp_path, FRONTDESK_HOME=str(tmp_path), PYTHONPROFILEIMPORTTIME="1")
    with subprocess.Popen(
        [program.FRONTDESK, "run"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=imports,
        cwd=tmp_path,
    ) as process:
        try:
            told = program.read_until(process, "event=gateway_started")
            process.terminate()
            told += program.finish(process)[1]
        finally:
            process.kill()
    loaded = set(re.findall(r"^import time: .*\| +([\w.]+)$", told, re.M))
    assert "frontdesk.app.gateway" in loaded
    assert UNCONFIGURED & {name.partition(".")[0] for name in loaded} == set()
    channels = {name for name in loaded if re.fullmatch(r"frontdesk\.channels\.\w+\.(?!facts$)\w+", name)}
    assert {name.split(".")[2] for name in channels} == {"local", "web"}
