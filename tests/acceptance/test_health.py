"""The truth about health, as the running program tells it: ``/readyz``, ``status``, ``doctor``, senders."""

import contextlib
import json
import os
import re
import shutil
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import apsw
import pytest

from frontdesk.formats import webhooks
from tests import mounts
from tests.acceptance import program
from tests.acceptance.test_run import SECRET, Receiver, request
from tests.patience import until

CONFIGURATION = """
[agent]
driver = "scripted"
[server]
port = 0
[confirm]
port = 0
[store]
url = "sqlite:///{database}"
[channels.webhook.shop]
secret_env = "SHOP_SECRET"
callback_url = "{callback}"
"""


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver().serving() as receiver:
        yield receiver


@pytest.fixture
def tiny_disk(tmp_path: Path) -> Iterator[Path]:
    with mounts.tiny_disk(tmp_path / "tiny") as folder:
        yield folder


class Running(NamedTuple):
    home: Path
    url: str
    environment: dict[str, str]

    def send(self, number: int, text: str = "hello", chat: str = "c1") -> tuple[int, str]:
        event = f"e{number}"
        body = json.dumps({"id": event, "chat_id": chat, "user_id": "u1", "text": text}).encode()
        headers = webhooks.signed_headers(SECRET, event, datetime.now(UTC), body)
        status, answer = request(self.url, "POST", "/channels/webhook/shop", body, headers)
        return status, answer.decode()

    def ready(self) -> tuple[int, str]:
        status, body = request(self.url, "GET", "/readyz")
        return status, body.decode()

    def status(self) -> tuple[int, dict[str, Any]]:
        done = program.run(self.home, "status", "--json", **self.environment)
        return done.returncode, json.loads(done.stdout)

    def doctor(self) -> tuple[int, str]:
        done = program.run(self.home, "doctor", **self.environment)
        return done.returncode, "\n".join(line for line in done.stdout.splitlines() if "failed" in line)

    def assert_not_ready(self, *words: str) -> None:
        """Everything that can be asked says so, and why."""
        code, told = self.ready()
        assert code == 503
        status, facts = self.status()
        assert (status, facts["running"], facts["ready"]) == (1, True, False)
        failed, found = self.doctor()
        assert failed == 1
        for word in words:
            assert word in told
            assert word in " ".join(facts["troubles"])
            assert word in found

    def assert_ready(self) -> None:
        until(lambda: self.ready()[0] == 200)
        assert self.status()[0] == 0
        code, found = self.doctor()
        assert (code, found) == (0, "")


def configure(home: Path, database: Path, receiver: Receiver) -> None:
    folder = home / ".frontdesk"
    folder.mkdir(exist_ok=True)
    (folder / "frontdesk.toml").write_text(CONFIGURATION.format(database=database, callback=receiver.url))


@contextlib.contextmanager
def running(home: Path, database: Path, receiver: Receiver, secret: str | None = SECRET) -> Iterator[Running]:
    configure(home, database, receiver)
    environment: dict[str, Any] = {"SHOP_SECRET": secret} if secret is not None else {}
    with program.start(home, "run", "--log-level", "error", **environment) as process:
        found = re.search(r"http://[\d.:]+", program.read_until(process, "agent is"))
        assert found
        yield Running(home, found[0], environment)


def fill_up(folder: Path) -> Path:
    filler = folder / "filler"
    with contextlib.suppress(OSError), filler.open("wb", buffering=0) as file:
        while file.write(bytes(4096)):
            pass
    return filler


def test_full_disk_is_told_until_there_is_room(tmp_path: Path, tiny_disk: Path, receiver: Receiver) -> None:
    with running(tmp_path, tiny_disk / "state.db", receiver) as desk:
        desk.assert_ready()
        filler = fill_up(tiny_disk)
        refused = next(
            answer for number in range(2000) if (answer := desk.send(number, "x" * 90_000))[0] != 202
        )
        assert refused[0] == 503
        assert "no room" in refused[1]
        desk.assert_not_ready("room")
        filler.unlink()
        mounts.enlarge(tiny_disk)
        desk.assert_ready()
        assert desk.send(9999)[0] == 202


def test_full_disk_at_the_start_is_said_with_what_to_do(
    tmp_path: Path, tiny_disk: Path, receiver: Receiver
) -> None:
    configure(tmp_path, tiny_disk / "state.db", receiver)
    filler = fill_up(tiny_disk)
    done = program.run(tmp_path, "run", "--log-level", "error", SHOP_SECRET=SECRET)
    assert done.returncode == 1
    assert "by itself" not in done.stdout + done.stderr
    assert "start it again" in done.stderr
    filler.unlink()
    with running(tmp_path, tiny_disk / "state.db", receiver) as desk:
        desk.assert_ready()


@pytest.mark.parametrize("fate", ["removed", "replaced", "truncated"])
def test_database_that_is_taken_away_is_told(tmp_path: Path, receiver: Receiver, fate: str) -> None:
    database = tmp_path / "state.db"
    with running(tmp_path, database, receiver) as desk:
        assert desk.send(1)[0] == 202
        receiver.wait_for(1)
        if fate == "removed":
            database.unlink()
        elif fate == "replaced":
            shutil.copyfile(database, tmp_path / "other.db")
            (tmp_path / "other.db").replace(database)
        else:
            os.truncate(database, 0)
        desk.assert_not_ready()
        code, told = desk.send(2)
        assert code == 503
        assert ("damaged" if fate == "truncated" else "taken away") in told
        desk.assert_not_ready()
        found = program.run(tmp_path, "doctor", **desk.environment).stdout
        assert re.search(r"confirmations +served at", found)


def test_answers_that_are_late_are_listed_with_why_and_when(tmp_path: Path, receiver: Receiver) -> None:
    receiver.url, there = "http://127.0.0.1:1/", receiver.url
    with running(tmp_path, tmp_path / "state.db", receiver) as desk:
        for number in range(3):
            assert desk.send(number, chat="c1")[0] == 202

        def listed(*arguments: str) -> str:
            return program.run(tmp_path, "deliveries", "list", *arguments, **desk.environment).stdout

        until(lambda: len(json.loads(listed("--json"))) >= 3)
        behind, *_, first = json.loads(listed("--json"))
        assert (first["state"] in ("pending", "sending"), first["attempts"] > 0) == (True, True)
        assert "ConnectError" in first["error"]
        assert (behind["attempts"], behind["next_try_at"]) == (0, None)
        table = listed()
        assert "ConnectError" in table
        assert "waits for the one before it" in table
        assert "webhook@shop, " in table
        assert re.search(r"in \d+ s|now", table)
    receiver.url = there


def damage_transcripts(database: Path) -> None:
    with contextlib.closing(apsw.Connection(str(database))) as db:
        sql = "SELECT pageno FROM dbstat WHERE name = 'messages' AND pagetype = 'leaf' ORDER BY path"
        pages = [page for (page,) in db.execute(sql)]
    with database.open("r+b") as file:
        file.seek((pages[len(pages) // 2] - 1) * 4096)
        file.write(b"\xa5" * 4096)


def test_damaged_page_is_named_to_everybody(tmp_path: Path, receiver: Receiver) -> None:
    database = tmp_path / "state.db"
    with running(tmp_path, database, receiver) as desk:
        for number in range(12):
            assert desk.send(number, "y" * 3000, chat=f"c{number}")[0] == 202
        receiver.wait_for(12)
    program.run(tmp_path, "sessions", "list", SHOP_SECRET=SECRET)  # closes the log that the kill left
    damage_transcripts(database)
    examined = program.run(tmp_path, "doctor", SHOP_SECRET=SECRET)
    assert examined.returncode == 1
    assert "damaged" in examined.stdout
    assert "recover" in examined.stdout
    with running(tmp_path, database, receiver) as desk:
        receiver.got.clear()
        sent = [desk.send(100 + number, "again", chat=f"c{number}") for number in range(12)]
        receiver.wait_for(sum(status == 202 for status, _ in sent))
        told = [each["text"] for each in receiver.got] + [text for status, text in sent if status != 202]
        assert any("database is damaged" in text for text in told)
        assert any(text.startswith("echo") for text in told)
        assert not any("frontdesk itself" in text for text in told)
        desk.assert_not_ready("damaged")


@pytest.mark.parametrize("fate", ["missing", "empty"])
def test_log_without_its_database_is_not_begun_anew_over(
    tmp_path: Path, receiver: Receiver, fate: str
) -> None:
    database = tmp_path / "state.db"
    with running(tmp_path, database, receiver) as desk:
        assert desk.send(1)[0] == 202
        receiver.wait_for(1)
    database.rename(tmp_path / "aside.db")
    if fate == "empty":
        database.touch()
    for command in ("run", "status", "sessions list", "doctor"):
        done = program.run(tmp_path, *command.split(), SHOP_SECRET=SECRET)
        assert done.returncode == 1
        assert f"is {fate}" in done.stdout + done.stderr
        assert "state.db-wal" in done.stdout + done.stderr
    (tmp_path / "aside.db").replace(database)
    listed = program.run(tmp_path, "sessions", "list", "--json", SHOP_SECRET=SECRET)
    assert len(json.loads(listed.stdout)) == 1


@pytest.mark.parametrize(
    ("secret", "word"),
    [
        (None, "SHOP_SECRET"),
        ("", "SHOP_SECRET"),
        ("short", "16 bytes"),
        ("whsec_no base64 at all", "base64"),
        ("whsec_c2hvcnQ=", "16 bytes"),
        ("a secret of\nseveral lines", "control characters"),
    ],
)
def test_secret_that_cannot_be_used_is_said_everywhere(
    tmp_path: Path, receiver: Receiver, secret: str | None, word: str
) -> None:
    configure(tmp_path, tmp_path / "state.db", receiver)
    environment: dict[str, Any] = {"SHOP_SECRET": secret} if secret is not None else {}
    with program.start(tmp_path, "run", "--log-level", "warning", **environment) as process:
        text = program.read_until(process, "agent is")
        assert "event=secret_missing" in text
        assert word in text
        found = re.search(r"http://[\d.:]+", text)
        assert found
        desk = Running(tmp_path, found[0], environment)
        code, answer = desk.send(1)
        assert (code, "secret" in answer) == (503, True)
        desk.assert_not_ready("webhook@shop")
        assert word in " ".join(desk.status()[1]["troubles"])
        assert word in desk.doctor()[1]
        if secret:
            assert secret not in str(desk.status()) + str(desk.doctor()) + desk.ready()[1] + answer


def first_words(home: Path, *arguments: str, terminal: bool, until: str) -> str:
    with program.start(home, *arguments, terminal=terminal) as process:
        return program.read_until(process, until)


@pytest.mark.parametrize(
    ("arguments", "until"),
    [(("run", "--log-level", "error"), "approver.token"), (("confirm", "serve"), "the mode is")],
)
@pytest.mark.parametrize("terminal", [True, False])
def test_token_is_shown_on_a_terminal_alone(
    tmp_path: Path, arguments: tuple[str, ...], until: str, terminal: bool
) -> None:
    folder = tmp_path / ".frontdesk"
    folder.mkdir()
    (folder / "frontdesk.toml").write_text(
        '[agent]\ndriver = "scripted"\n[server]\nport = 0\n[confirm]\nport = 0\n'
    )
    with program.start(tmp_path, *arguments, terminal=terminal) as process:
        text = program.read_until(process, until)
        token = (folder / "confirm" / "approver.token").read_text().strip()
        if terminal and token not in text:
            text += program.read_until(process, token)
        process.terminate()
        text += program.finish(process)[1] if not terminal else ""
    assert "approver.token" in text
    assert (token in text) is terminal
