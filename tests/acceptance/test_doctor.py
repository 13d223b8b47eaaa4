"""``frontdesk doctor`` about confirmations."""

import json
import socket
import subprocess
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from frontdesk import plugins
from frontdesk.confirm import SyncClient
from frontdesk.stores.store import Store
from frontdesk.testing import SettableClock
from tests.acceptance import program
from tests.acceptance.services import serving, tamper
from tests.contracts.asking import Asker, request

CONFIGURATION = '[agent]\ndriver = "scripted"\n[confirm]\nport = 0\n'
HOME_CHANNEL = '[platforms.local.home_channel]\nchat_id = "cli"\nname = "Terminal"\n'
NAMES = ("approvers", "confirmations", "audit log", "callbacks")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    configure(tmp_path)
    return tmp_path


def configure(home: Path, more: str = "") -> None:
    folder = home / ".frontdesk"
    folder.mkdir(exist_ok=True)
    (folder / "frontdesk.toml").write_text(f"{CONFIGURATION}{more}")


def examined(home: Path, *arguments: str, code: int = 0, **more: str) -> dict[str, tuple[str, str]]:
    done = program.run(home, "doctor", "--json", *arguments, **more)
    assert done.returncode == code, done.stdout + done.stderr
    return {each["check"]: (each["verdict"], each["text"]) for each in json.loads(done.stdout)}


def port_of(url: str) -> str:
    return str(urlsplit(url).port)


def test_home_without_anything_has_only_nobody_to_tell(home: Path) -> None:
    found = examined(home)
    assert [found[name][0] for name in NAMES] == ["warning", "ok", "ok", "ok"]
    assert "home_channel" in found["approvers"][1]
    assert (found["audit log"][1], found["callbacks"][1]) == ("empty", "none waiting")


def test_home_channel_of_a_connected_channel_makes_somebody_reachable(home: Path) -> None:
    configure(home, HOME_CHANNEL)
    assert examined(home)["approvers"] == ("ok", "approver; told in local")


def test_approver_without_a_token_is_named(home: Path) -> None:
    configure(home, f'[confirm.approvers_env]\nann = "ANN_TOKEN"\n{HOME_CHANNEL}')
    verdict, text = examined(home)["approvers"]
    assert (verdict, "ann" in text) == ("warning", True)
    assert examined(home, ANN_TOKEN="a" * 32)["approvers"] == ("ok", "approver, ann; told in local")


def test_service_that_runs_is_recognised_and_its_log_looked_at(home: Path) -> None:
    with serving(home) as service:
        SyncClient(service.url).request("reboot", "Reboot it")
        found = examined(home, FRONTDESK_CONFIRM_PORT=port_of(service.url))
    assert found["confirmations"][0] == "ok"
    assert found["confirmations"][1].endswith("1 waiting")
    assert found["audit log"][0] == "ok"
    assert found["audit log"][1].startswith("row 1, the newest, holds")


def test_few_files_are_a_warning_that_says_how_many_are_needed(home: Path) -> None:
    limited = [
        "/bin/sh",
        "-c",
        'ulimit -n 1024 && exec "$@"',
        "sh",
        str(program.FRONTDESK),
        "doctor",
        "--json",
    ]
    done = subprocess.run(limited, env=program.environment(home), cwd=home, capture_output=True, check=True)
    (found,) = [each for each in json.loads(done.stdout) if each["check"] == "connections"]
    assert found["verdict"] == "warning"
    assert found["text"].startswith("256 connections at a time on each port, not the 1000 of server.")
    assert "LimitNOFILE=) to 4000" in found["text"]


def test_connections_that_were_cut_off_are_counted(home: Path) -> None:
    with serving(home) as service:
        with socket.create_connection(("127.0.0.1", int(port_of(service.url)))) as wire:
            wire.sendall(b"hello\r\n\r\n")
            assert wire.recv(1000)
        assert examined(home)["connections"][1].endswith("cut off: 1 malformed")


def test_port_that_another_program_has_is_a_warning(home: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        taken.listen()
        found = examined(home, FRONTDESK_CONFIRM_PORT=str(taken.getsockname()[1]))
    assert found["confirmations"][0] == "warning"
    assert "another program" in found["confirmations"][1]


def test_public_port_that_another_program_has_is_a_warning_that_says_what_to_do(home: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        configure(home, f"[server]\nport = {port}\n")
        verdict, text = examined(home)["address"]
    assert verdict == "warning"
    assert text.startswith(f"Port {port} of 127.0.0.1 is in use by another program. Stop that one, or")


def test_service_of_another_home_is_another_program(home: Path) -> None:
    other = home / "other"
    other.mkdir()
    with serving(other) as service:
        there = {"FRONTDESK_CONFIRM_PORT": port_of(service.url)}
        verdict, text = examined(home, code=0, **there)["confirmations"]
        assert (verdict, "no service of yours runs" in text) == ("warning", True)
        with serving(home) as own:
            verdict, text = examined(home, code=0, **there)["confirmations"]
    assert (verdict, f"your service is at {own.url}" in text) == ("warning", True)


def test_store_that_the_service_has_is_told_with_what_is_not_known_then(home: Path) -> None:
    with serving(home):
        found = examined(home)
    assert found["store"][0] == "ok"
    assert found["store"][1].endswith("state.db, in use by the running confirmation service")
    assert (found["callbacks"][0], "not known" in found["callbacks"][1]) == ("note", True)


def test_store_that_another_program_has_is_a_warning_that_names_it(home: Path) -> None:
    other = home / "other"
    other.mkdir()
    with serving(other, "--db-path", str(home / ".frontdesk" / "state.db")) as service:
        done = program.run(home, "doctor")
    store = next(line for line in done.stdout.splitlines() if " store " in line)
    assert store.startswith("warning")
    assert f"in use by process {service.process.pid}" in store


def test_log_that_lacks_the_anchored_row_fails(home: Path) -> None:
    with serving(home) as service:
        for number in range(4):
            SyncClient(service.url).request("reboot", "Reboot it", {"number": number})
    anchor = str(home / "anchors")
    missing = examined(home, "--anchor", anchor, code=1)["audit log"]
    assert (missing[0], "removed" in missing[1]) == ("failed", True)
    assert program.run(home, "audit", "verify", "--new-anchor", "--anchor", anchor).returncode == 0
    assert examined(home, "--anchor", anchor)["audit log"] == (
        "ok",
        "row 4, the newest, holds, and the anchor's row 4",
    )
    tamper(home / ".frontdesk" / "state.db", "DELETE FROM audit WHERE number = 4")
    assert "truncated" in examined(home, "--anchor", anchor, code=1)["audit log"][1]
    assert examined(home)["audit log"][0] == "ok"


def test_newest_row_that_was_changed_fails(home: Path) -> None:
    with serving(home) as service:
        SyncClient(service.url).request("reboot", "Reboot it")
    change = "UPDATE audit SET body = CAST(upper(CAST(body AS TEXT)) AS BLOB)"
    tamper(home / ".frontdesk" / "state.db", change)
    verdict, text = examined(home, code=1)["audit log"]
    assert (verdict, "does not fit its hash" in text) == ("failed", True)


async def test_callbacks_that_nobody_makes_are_a_warning(home: Path) -> None:
    url = f"sqlite:///{home}/.frontdesk/state.db"
    store: Store = await plugins.load_store(url)(url)
    asker = Asker(store, SettableClock(datetime(2026, 1, 5, tzinfo=UTC)))
    await asker.deny(await asker.ask(request(callback_url="https://agent.example/")))
    await store.close()
    verdict, text = examined(home)["callbacks"]
    assert (verdict, text.startswith("1 of 1 are overdue")) == ("warning", True)
