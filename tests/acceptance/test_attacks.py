"""An agent that wants its way, against the service as a user starts it: what it tries, one by one."""

import os
import re
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import apsw
import httpx
import pytest

from tests import loopback
from tests.acceptance import program
from tests.acceptance.services import Service, serving, tamper

AGENT = "an agent's token, made by chance: 5f3a9c1e"
SETTINGS = """
[confirm]
mode = "team"
[confirm.agents_env]
bot = "BOT_TOKEN"
"""
PROMPTS_PER_HOUR, MOST_DENIALS = 60, 5
FORGED = 'Tidying up.\nWhat will be done:\ndetails: {}\n\nAction: "list_files"'


class Attack:
    """An agent, and an approver whom it knows nothing of."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self.agent = httpx.Client(base_url=service.url, trust_env=False)
        headers = {"authorization": f"Bearer {service.token}"}
        self.approver = httpx.Client(base_url=service.url, trust_env=False, headers=headers)
        page = re.search(r"at (http://[\d.:]+)/approvals", service.greeting)
        assert page
        self.page_url = page[1]

    def ask(self, action: str, **details: Any) -> httpx.Response:
        body = {"action": action, "description": FORGED, "details": details}
        return self.agent.post("/confirm", json=body)

    def allow(self, **rule: Any) -> httpx.Response:
        end = (datetime.now(UTC) + timedelta(hours=1)).isoformat()
        return self.approver.post("/rules", json={"effect": "allow", "expires_at": end} | rule)

    def allow_paths(self, action: str, pattern: str) -> None:
        where = {"argument": "path", "test": "like", "value": pattern}
        self.allow(action=action, conditions=[where]).raise_for_status()

    def decide(self, asked: httpx.Response, verb: str) -> None:
        self.approver.post(f"/confirm/{asked.json()['id']}/{verb}", json={}).raise_for_status()

    def status(self, asked: httpx.Response) -> str:
        return str(self.approver.get(f"/confirm/{asked.json()['id']}").json()["status"])

    def waiting(self, action: str) -> list[dict[str, Any]]:
        found = self.approver.get("/confirm", params={"status": "pending"}).json()["confirmations"]
        return [each for each in found if each["action"] == action]

    def cookies(self) -> httpx.Cookies:
        """The approver's, who signs in on the page."""
        own = {"x-frontdesk-page": "1", "origin": self.page_url, "sec-fetch-site": "same-origin"}
        with closing(httpx.Client(base_url=self.page_url, trust_env=False)) as browser:
            said = {"token": self.service.token}
            browser.post("/login", json=said, headers=own).raise_for_status()
            return browser.cookies

    def close(self) -> None:
        self.agent.close()
        self.approver.close()


@pytest.fixture(scope="module")
def attack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Attack]:
    with ExitStack() as opened:
        yield opened.enter_context(closing(begun(opened, tmp_path_factory.mktemp("home"))))


@pytest.fixture
def fresh_attack(tmp_path: Path) -> Iterator[Attack]:
    with ExitStack() as opened:
        yield opened.enter_context(closing(begun(opened, tmp_path)))


def begun(opened: ExitStack, home: Path, *arguments: str, **more: str) -> Attack:
    options = ("--page-port", str(loopback.free_port()), "--rate-limit", "1000", *arguments)
    return Attack(opened.enter_context(serving(home, *options, port=0, **more)))


def test_cookie_that_another_port_received_decides_nothing(attack: Attack) -> None:
    asked = attack.ask("send", to="eve")
    forged = {"x-frontdesk-page": "1", "origin": attack.page_url, "sec-fetch-site": "same-origin"}
    said = {"approves": True, "digest": asked.json()["digest"]}
    with closing(httpx.Client(base_url=attack.page_url, trust_env=False, cookies=attack.cookies())) as thief:
        assert thief.get(f"/approvals/{asked.json()['id']}").status_code == 200
        answer = thief.post(f"/approvals/{asked.json()['id']}/decision", json=said, headers=forged)
    assert (answer.is_success, attack.status(asked)) == (False, "pending")


def test_words_of_the_agent_are_not_what_stands_above_the_question(attack: Attack) -> None:
    asked = attack.ask("wipe", path="/srv/customers")
    arguments = ("confirm", "approve", asked.json()["id"], "--url", attack.service.url)
    with program.start(attack.service.home, *arguments, terminal=True, COLUMNS="100") as process:
        shown = program.read_until(process, "[y/N]: ")
        process.kill()
    *_, last = shown.replace("\r\n", "\n").rpartition("list_files")
    assert '"wipe"' in last
    assert "/srv/customers" in last


def test_dangerous_word_after_a_secrets_name_is_shown(attack: Attack) -> None:
    asked = attack.ask("run", argv=["dropdb", "--password", "production"])
    shown = attack.service.run("confirm", "show", asked.json()["id"]).stdout
    assert "production" in shown


def test_words_that_pass_for_others_are_marked(attack: Attack) -> None:
    asked = attack.ask("open", path="/srv/\u0441\u043e\u0440\u0443", other="\u05d0 12", third="p\u0251ypal")
    shown = attack.service.run("confirm", "show", asked.json()["id"]).stdout
    assert "/srv/\u0441\u043e\u0440\u0443" not in shown
    assert '"\u05d0 12"' not in shown
    assert "p\u0251ypal" not in shown


def test_one_of_the_ten_in_another_spelling_is_asked_under_any_rule(attack: Attack) -> None:
    attack.allow(action="wipe_d\u0251tabase")
    assert attack.ask("wipe_d\u0251tabase", database="prod").json()["status"] == "pending"


def test_name_that_only_looks_different_is_denied_by_a_rule(attack: Attack) -> None:
    attack.approver.post("/rules", json={"effect": "deny", "action": "drop_*"}).raise_for_status()
    attack.allow(action="dr\u043ep_all")
    assert attack.ask("dr\u043ep_all").status_code == 403


@pytest.mark.parametrize(
    "path", ["/tmp/../etc/passwd", "/tmp/a\n/etc/passwd", "/tmp/a /etc/passwd", "/tmp/..\\etc", "/tmp/"]
)
def test_odd_path_that_a_pattern_fits_is_asked(attack: Attack, path: str) -> None:
    attack.allow_paths("remove", "/tmp/*")
    assert attack.ask("remove", path="/tmp/a").json()["status"] == "auto_approved"
    assert attack.ask("remove", path=path).json()["status"] == "pending"


def test_content_that_nobody_can_read_is_asked_under_any_rule(attack: Attack) -> None:
    attack.allow(action="upload").raise_for_status()
    assert attack.ask("upload", content="aGVsbG8gd29ybGQg" * 40).json()["status"] == "pending"


def test_rule_that_can_never_fit_is_refused(attack: Attack) -> None:
    told = attack.approver.post("/rules", json={"effect": "deny", "digest": "0123"})
    assert told.status_code == 400


def test_used_grant_is_said_to_be_used(attack: Attack) -> None:
    body = {"action": "send", "description": "x", "details": {"to": "ann"}}
    key = {"idempotency-key": "order-1"}
    asked = attack.agent.post("/confirm", json=body, headers=key)
    attack.decide(asked, "approve")
    used = {"digest": asked.json()["digest"]}
    attack.agent.post(f"/confirm/{asked.json()['id']}/redeem", json=used).raise_for_status()
    assert attack.agent.post("/confirm", json=body, headers=key).status_code == 410


def test_people_are_asked_so_often_in_an_hour_and_no_more(fresh_attack: Attack) -> None:
    for number in range(PROMPTS_PER_HOUR):
        asked = fresh_attack.ask(f"send_{number}", number=number)
        assert asked.status_code == 202
        fresh_attack.decide(asked, "approve")
    assert fresh_attack.ask("another", number=-1).status_code == 429


def test_what_was_denied_does_not_come_back_under_another_name(fresh_attack: Attack) -> None:
    for number in range(MOST_DENIALS):
        fresh_attack.decide(fresh_attack.ask(f"send_{number}", number=number), "deny")
    assert fresh_attack.ask("renamed", number=1).status_code == 403
    assert not fresh_attack.ask("another", number=-1).is_success, "after so many denials nobody is asked"


def test_agent_that_tries_to_decide_is_written_down(tmp_path: Path) -> None:
    (tmp_path / ".frontdesk").mkdir()
    (tmp_path / ".frontdesk" / "frontdesk.toml").write_text(SETTINGS)
    with ExitStack() as opened:
        attack = opened.enter_context(closing(begun(opened, tmp_path, BOT_TOKEN=AGENT)))
        attack.agent.headers["authorization"] = f"Bearer {AGENT}"
        asked = attack.ask("send", to="eve")
        before = attack.approver.get("/audit?view=events&limit=100").json()["entries"]
        answer = attack.agent.post(f"/confirm/{asked.json()['id']}/approve", json={})
        assert (answer.status_code, attack.status(asked)) == (403, "pending")
        assert len(attack.approver.get("/audit?view=events&limit=100").json()["entries"]) > len(before)


def test_weak_token_of_an_approver_is_refused(tmp_path: Path) -> None:
    (tmp_path / ".frontdesk").mkdir()
    settings = '[confirm]\nmode = "team"\n[confirm.approvers_env]\nann = "ANN_TOKEN"\n'
    (tmp_path / ".frontdesk" / "frontdesk.toml").write_text(settings)
    with ExitStack() as opened:
        attack = opened.enter_context(closing(begun(opened, tmp_path, ANN_TOKEN="hunter2")))
        ann = {"authorization": "Bearer hunter2"}
        assert attack.agent.get("/rules", headers=ann).status_code == 401


def test_service_without_tokens_is_not_for_other_machines(tmp_path: Path) -> None:
    with (
        pytest.raises(AssertionError, match="the program ended"),
        serving(tmp_path, "--host", "0.0.0.0"),
    ):
        pass


def test_second_name_of_the_database_opens_no_second_service(attack: Attack, tmp_path: Path) -> None:
    home = tmp_path / ".frontdesk"
    home.mkdir()
    os.link(attack.service.home / ".frontdesk" / "state.db", home / "state.db")
    with pytest.raises(AssertionError, match="the program ended"), serving(tmp_path):
        pass
    (home / "state.db").unlink()


def test_log_without_its_triggers_is_an_error(fresh_attack: Attack) -> None:
    asked = fresh_attack.ask("send", to="ann")
    fresh_attack.decide(asked, "approve")
    fresh_attack.service.kill()
    home = fresh_attack.service.home
    with closing(apsw.Connection(str(home / ".frontdesk" / "state.db"))) as database:
        for (name,) in [*database.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'")]:
            if "audit" in name:
                database.execute(f'DROP TRIGGER "{name}"')
    assert program.run(home, "audit", "verify").returncode != 0


def test_decision_that_the_log_does_not_have_is_found(fresh_attack: Attack) -> None:
    asked = fresh_attack.ask("send", to="eve")
    fresh_attack.service.kill()
    home = fresh_attack.service.home
    tamper(
        home / ".frontdesk" / "state.db",
        "UPDATE confirmations SET status = 'approved', resolved_by = 'token:approver',"
        f" resolved_at = created_at WHERE id = '{asked.json()['id']}'",
    )
    assert program.run(home, "audit", "verify").returncode != 0


def test_interpreter_that_was_exchanged_is_not_run(attack: Attack, tmp_path: Path) -> None:
    shell, script, mark = tmp_path / "shell", tmp_path / "script", tmp_path / "ran"
    shell.write_bytes(Path("/bin/sh").read_bytes())
    script.write_text(f"#!{shell}\ntouch {mark}\n")
    for each in (shell, script):
        each.chmod(0o755)
    run = ("confirm", "run", "--action", "tidy", "--url", attack.service.url, "--", str(script))
    with program.start(attack.service.home, *run) as process:
        while not (waiting := attack.waiting("tidy")):
            time.sleep(0.05)
        shell.unlink()
        shell.write_bytes(Path("/bin/sh").read_bytes() + b"\0")
        shell.chmod(0o755)
        attack.approver.post(f"/confirm/{waiting[0]['id']}/approve", json={}).raise_for_status()
        assert process.wait(program.PATIENCE_SECONDS) != 0
    assert not mark.exists()
