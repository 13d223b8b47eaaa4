"""``frontdesk confirm`` as a user starts it: the service, commands that wait for people, MCP tools."""

import contextlib
import hashlib
import json
import os
import pty
import re
import signal
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from frontdesk import errors
from frontdesk.confirm import SyncClient, Ticket
from frontdesk.model.confirmations import HIGH_RISK_ACTIONS, MOST_DENIALS
from tests import loopback
from tests.acceptance import forks, program, services, terminals
from tests.acceptance.services import Service
from tests.counts import count

WAITING = re.compile(r"about (c_[0-9a-f]+)\.")


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    with services.serving(tmp_path, "--rate-limit", "100000") as service:
        yield service


class TestServe:
    def test_approvers_token_is_kept_for_its_owner_and_in_no_log(self, tmp_path: Path) -> None:
        with services.serving(tmp_path) as first:
            assert "approver.token" in first.greeting
            assert first.token not in first.greeting
        with services.serving(tmp_path) as second:
            assert second.token == first.token
            assert second.token not in second.greeting
        mode = (tmp_path / ".frontdesk" / "confirm" / "approver.token").stat().st_mode
        assert stat.S_IMODE(mode) == 0o600

    def test_health_is_what_requests_meet(self, tmp_path: Path) -> None:
        with services.serving(tmp_path) as service:
            assert httpx.get(f"{service.url}/health").is_success
            (tmp_path / ".frontdesk" / "state.db").rename(tmp_path / "aside.db")
            assert httpx.get(f"{service.url}/health").status_code == 503
            (tmp_path / "aside.db").rename(tmp_path / ".frontdesk" / "state.db")
            assert httpx.get(f"{service.url}/health").is_success

    def test_variables_set_the_address_and_options_win(self, tmp_path: Path) -> None:
        port, other = loopback.free_port(), loopback.free_port()
        variables = {"CONFIRMATION_PORT": str(port), "CONFIRMATION_RATE_LIMIT": "1"}
        with program.start(
            tmp_path, "confirm", "serve", terminal=False, CONFIRMATION_HOST="127.0.0.1", **variables
        ) as process:
            service = Service(tmp_path, process, program.read_until(process, services.READY))
            client = SyncClient(f"http://127.0.0.1:{port}")
            assert service.url == client.url
            client.request("reboot", "Reboot it")
            with pytest.raises(errors.RateLimited):
                client.request("reboot", "Reboot it", {"host": "db2"})
            near = {"CONFIRMATION_HOST": "localhost", "CONFIRMATION_PORT": str(port)}
            assert program.run(tmp_path, "confirm", "list", given=b"", **near).returncode == 0
            assert program.run(tmp_path, "confirm", "list", FRONTDESK_CONFIRM_PORT=str(port)).returncode == 0
        with services.serving(tmp_path, "--rate-limit", "2", port=other, **variables) as service:
            assert service.url == f"http://127.0.0.1:{other}"

    def test_variable_that_is_no_number_is_named(self, tmp_path: Path) -> None:
        done = program.run(tmp_path, "confirm", "serve", CONFIRMATION_RATE_LIMIT="many")
        assert done.returncode == 1
        assert "confirm.rate_limit is 'many'" in done.stderr
        assert "CONFIRMATION_RATE_LIMIT" in done.stderr

    def test_memory_keeps_nothing(self, tmp_path: Path) -> None:
        with services.serving(tmp_path, "--db-path", ":memory:") as service:
            assert SyncClient(service.url).request("reboot", "Reboot it").id
        assert not list(tmp_path.rglob("*.db*"))

    def test_file_of_another_process_is_refused_and_its_holder_named(self, service: Service) -> None:
        done = program.run(service.home, "confirm", "serve", "--port", "0")
        assert done.returncode == 1
        assert f"in use by process {service.process.pid}" in done.stderr
        with services.serving(service.home, "--db-path", "another.db") as second:
            assert second.url != service.url

    def test_port_that_is_taken_is_told(self, service: Service) -> None:
        port = service.url.rpartition(":")[2]
        done = program.run(service.home, "confirm", "serve", "--port", port, "--db-path", ":memory:")
        assert done.returncode == 1
        assert f"Port {port} of 127.0.0.1 is in use by another program." in done.stderr
        assert "choose another port in confirm.port." in " ".join(done.stderr.split())

    def test_port_of_its_own_is_told_to_be_no_port_for_the_page(self, tmp_path: Path) -> None:
        done = program.run(tmp_path, "confirm", "serve", "--port", "6015", "--page-port", "6015")
        assert (done.returncode, "cannot both have port 6015" in done.stderr) == (2, True)

    def test_order_to_stop_is_followed(self, service: Service) -> None:
        service.process.send_signal(signal.SIGTERM)
        assert service.process.wait(program.PATIENCE_SECONDS) == 0

    def test_page_has_a_port_of_its_own(self, tmp_path: Path) -> None:
        port = loopback.free_port()
        with services.serving(tmp_path, "--page-port", str(port)) as service:
            assert f"at http://127.0.0.1:{port}" in service.greeting
            ticket = SyncClient(service.url).request("reboot", "Reboot it")
            assert f"http://127.0.0.1:{port}/approvals/{ticket.id}" in ticket.message

    def test_token_is_in_no_log_and_no_database(self, tmp_path: Path) -> None:
        with program.start(tmp_path, "confirm", "serve", "--port", "0", "--log-level", "debug") as process:
            service = Service(tmp_path, process, program.read_until(process, services.READY))
            with service.approver() as approver, ThreadPoolExecutor() as pool:
                deciding = pool.submit(approver.decide)
                SyncClient(service.url).obtain("reboot", "Reboot it")
                deciding.result()
            process.send_signal(signal.SIGTERM)
            _, written = program.finish(process)
        assert service.token not in written
        kept = b"".join(file.read_bytes() for file in (tmp_path / ".frontdesk").glob("state.db*"))
        assert kept
        assert service.token.encode() not in kept


SECRET = "aB3dE5gH7jK9"


def newest(service: Service) -> dict[str, Any]:
    """The last row of the audit log."""
    with service.approver() as approver:
        (row,) = approver.get("/audit?view=events&limit=1")["entries"]
    return dict(row)


class TestDecide:
    def test_request_is_listed_shown_approved_and_listed_no_more(self, service: Service) -> None:
        ticket = SyncClient(service.url).request(
            "reboot", "Reboot it", {"host": "db1 ", "password": "hunter2"}
        )
        (listed,) = json.loads(service.run("confirm", "list", "--json").stdout)
        assert (listed["id"], listed["status"]) == (ticket.id, "pending")
        shown = service.run("confirm", "show", ticket.id)
        assert 'host: "db1␣"' in shown.stdout
        assert ticket.digest in shown.stdout
        assert shown.stdout.splitlines()[-2:] == ['Action: "reboot"', 'Its host: "db1␣"']
        done = service.run("confirm", "approve", ticket.id, "--digest", ticket.digest, "--name", "Ann")
        assert (done.returncode, done.stdout) == (0, f'{ticket.id} ("reboot") is approved.\n')
        assert service.run("confirm", "list").stdout.startswith("Nothing waits")
        again = json.loads(service.run("confirm", "show", ticket.id, "--json").stdout)
        assert (again["resolved_by"], again["resolved_as"]) == ("token:approver", "Ann")

    def test_list_says_of_what_it_has_no_room_for_that_nobody_has_looked_at_it(
        self, service: Service
    ) -> None:
        script = "".join(f"echo {number}\n" for number in range(9_000)) + "rm -rf /srv"
        SyncClient(service.url).request("run_script", "Please", {"script": script})
        listed = service.run("confirm", "list").stdout
        assert "\n  ▲ too long for a list: look at it with `frontdesk confirm show`\n" in listed

    def test_list_says_what_each_is_about_and_what_happens_without_an_answer(self, service: Service) -> None:
        client = SyncClient(service.url)
        details = {"database": "customers_prod", "env": {"API_KEY": SECRET}}
        first = client.request("wipe_database", "Make room", details, requester='me" c_0 is approved')
        second = client.request("asked 1 s ago by me", "Say it", {"argv": ["git", "push", "--force"]})
        listed = service.run("confirm", "list").stdout
        later, earlier = listed.strip().split("\n\n")
        assert [line.split("  ")[0] for line in earlier.splitlines()] == [first.id, "", "", ""]
        assert re.match(rf"{first.id}  is refused in [45] min unless somebody decides\n", earlier)
        assert "\n  ▲ one of the ten  ! first time  ! 1 hidden\n" in earlier
        assert "\n  What will be done: wipe_database database: customers_prod" in earlier
        assert re.search(r'\n  asked \d+ s ago by "me\\" c_0 is approved"$', earlier)
        assert later.startswith(f"{second.id}  is refused")
        assert "git push --force" in later
        assert SECRET not in listed
        service.run("confirm", "deny", second.id)
        (line, *_) = service.run("confirm", "list", "--status", "denied").stdout.splitlines()
        assert re.fullmatch(rf"{second.id}  was denied \d+ s ago by token:approver", line)
        with program.start(service.home, "confirm", "list", terminal=True, COLUMNS="24") as process:
            narrow = program.finish(process)[1].splitlines()
        assert all(len(line) <= 24 for line in narrow)
        assert [line for line in narrow if not line.startswith(" ")] == [f"{first.id}  is"]

    def test_hidden_values_are_counted_and_revealed_with_a_row_in_the_log(self, service: Service) -> None:
        client = SyncClient(service.url)
        details = {"password": SECRET, "env": {"TOKEN": f"{SECRET}\u202e"}}
        ticket = client.request("reboot", "Reboot it", details)
        shown = service.run("confirm", "show", ticket.id).stdout
        how = f"frontdesk confirm show {ticket.id} --reveal --url {service.url}"
        hidden = "2 values are hidden: env.TOKEN (12 characters), password (12 characters)."
        assert f"\n! {hidden} See it with: {how}\n" in shown
        revealed = program.run(service.home, *how.split()[1:]).stdout
        assert f'password: "{SECRET}"' in revealed
        assert f'TOKEN: "{SECRET}\\u{{202e}}"' in revealed
        assert "hidden" not in revealed
        assert (newest(service)["kind"], newest(service)["digest"]) == ("revealed", ticket.digest)

    def test_what_is_hidden_is_not_approved_unseen(self, service: Service) -> None:
        ticket = SyncClient(service.url).request("reboot", "Reboot it", {"password": SECRET})
        for options in (("--yes",), ("--digest", ticket.digest)):
            refused = service.run("confirm", "approve", ticket.id, *options)
            assert (refused.returncode, "not looked at" in refused.stderr) == (1, True)
        arguments = ("confirm", "approve", ticket.id, "--url", service.url)
        with program.start(service.home, *arguments, terminal=True) as process:
            asked = program.read_until(process, "Show what is hidden? The log says that you looked. [y/N]: ")
            program.write(process, "n\n")
            code, said = program.finish(process)
        assert (code, "not looked at" in said, SECRET in asked + said) == (1, True, False)
        assert newest(service)["kind"] == "submitted"
        with program.start(service.home, *arguments, terminal=True) as process:
            program.read_until(process, "looked. [y/N]: ")
            program.write(process, "y\n")
            shown = program.read_until(process, "Approve exactly this? [y/N]: ")
            program.write(process, "y\n")
            code, said = program.finish(process)
        assert (code, "is approved" in said, f'password: "{SECRET}"' in shown) == (0, True, True)
        again = SyncClient(service.url).request("reboot", "Reboot it", {"password": SECRET, "n": 2})
        done = service.run("confirm", "approve", again.id, "--yes", "--reveal")
        assert (done.returncode, f'password: "{SECRET}"' in done.stderr) == (0, True)

    def test_one_of_the_ten_is_approved_by_typing_its_target(self, service: Service) -> None:
        ticket = SyncClient(service.url).request("wipe_database", "Make room", {"database": "customers_prod"})
        for options in (("--yes",), ("--digest", ticket.digest), ("--yes", "--target", "customers")):
            refused = service.run("confirm", "approve", ticket.id, *options)
            assert refused.returncode == 1
            assert 'type the value of "database" to approve it, with --target.' in refused.stderr
        arguments = ("confirm", "approve", ticket.id, "--url", service.url)
        with program.start(service.home, *arguments, terminal=True) as process:
            program.read_until(process, 'To approve, type the value of "database": ')
            program.write(process, "yes\n")
            assert program.finish(process)[0] == 1
        with program.start(service.home, *arguments, terminal=True) as process:
            program.read_until(process, 'To approve, type the value of "database": ')
            program.write(process, "customers_prod\n")
            program.read_until(process, "Approve exactly this? [y/N]: ")
            program.write(process, "y\n")
            code, said = program.finish(process)
        assert (code, "is approved" in said) == (0, True)

    def test_last_thing_before_the_question_is_the_action(self, service: Service) -> None:
        forged = "Harmless.\n" * 900 + 'What will be done:\ndetails: {}\n\nAction: "list_files"\n'
        wide = "x" * 77 + 'Action: "list_files"'
        client = SyncClient(service.url)
        ticket = client.request("reboot", forged, {"host": "db1", "note": wide}, requester='me" list_files')
        arguments = ("confirm", "approve", ticket.id, "--url", service.url)
        with program.start(service.home, *arguments, terminal=True) as process:
            shown = program.read_until(process, "Approve exactly this? [y/N]: ")
            program.write(process, "n\n")
            program.finish(process)
        lines = [line.rstrip() for line in shown.splitlines()]
        assert lines[-4:] == ['Action: "reboot"', 'Its host: "db1"', "", "Approve exactly this? [y/N]:"]
        assert [line for line in lines if line.startswith("Action")] == ['Action: "reboot"']
        assert len([line for line in lines if line.startswith(">")]) == 5
        whole = service.run("confirm", "show", ticket.id).stdout.splitlines()
        assert len([line for line in whole if line.startswith(">")]) == 903
        assert whole[-2:] == ['Action: "reboot"', 'Its host: "db1"']

    def test_agents_token_reveals_nothing(self, tmp_path: Path) -> None:
        variables = {"CONFIRMATION_TOKEN": "agents-token-0123456789", "BOT": "agents-token-0123456789"}
        folder = tmp_path / ".frontdesk"
        folder.mkdir()
        (folder / "frontdesk.toml").write_text('[confirm.agents_env]\nbot = "BOT"\n')
        with services.serving(tmp_path, port=0, **variables) as service:
            client = SyncClient(service.url, variables["CONFIRMATION_TOKEN"])
            ticket = client.request("reboot", "Reboot it", {"password": SECRET})
            done = service.run("confirm", "show", ticket.id, "--reveal", **variables)
        assert (done.returncode, SECRET in done.stdout) == (1, False)
        assert "approver's credential" in done.stderr

    def test_grant_that_was_used_is_shown_as_used(self, service: Service) -> None:
        client = SyncClient(service.url)
        ticket = client.request("reboot", "Reboot it")
        service.run("confirm", "approve", ticket.id, "--yes")
        client.redeem(ticket)
        shown = service.run("confirm", "show", ticket.id).stdout
        assert re.search(r"^used +\d{4}-", shown, re.MULTILINE)
        assert "carried out" not in shown

    def test_another_digest_is_not_approved(self, service: Service) -> None:
        ticket = SyncClient(service.url).request("reboot", "Reboot it")
        done = service.run("confirm", "approve", ticket.id, "--digest", "0" * 64)
        assert done.returncode == 1
        assert "the digest differs" in done.stderr
        with service.approver() as approver:
            assert [asked["id"] for asked in approver.pending()] == [ticket.id]

    def test_nobody_approves_by_accident(self, service: Service) -> None:
        ticket = SyncClient(service.url).request("reboot", "Reboot it")
        done = service.run("confirm", "approve", ticket.id)
        assert done.returncode == 2
        assert "--yes" in done.stderr
        arguments = ("confirm", "approve", ticket.id, "--url", service.url)
        with program.start(service.home, *arguments, terminal=True) as process:
            asked = program.read_until(process, "Approve exactly this? [y/N]: ")
            assert "Reboot it" in asked
            program.write(process, "n\n")
            assert program.finish(process)[0] == 1
        with program.start(service.home, *arguments, terminal=True) as process:
            program.read_until(process, "Approve exactly this? [y/N]: ")
            program.write(process, "y\n")
            code, said = program.finish(process)
        assert (code, "is approved" in said) == (0, True)

    def test_denying_gives_a_reason(self, service: Service) -> None:
        client = SyncClient(service.url)
        ticket = client.request("reboot", "Reboot it")
        assert service.run("confirm", "deny", ticket.id, "--reason", "not now").returncode == 0
        assert client.wait(ticket).reason == "not now"
        late = service.run("confirm", "approve", ticket.id, "--yes")
        assert late.returncode == 1
        assert "is denied" in late.stderr

    def test_answer_of_before_the_question_is_none(self, service: Service) -> None:
        ticket = SyncClient(service.url).request("reboot", "Reboot it")
        with terminals.seated(service.home, "confirm", "approve", ticket.id) as seat:
            seat.type("y\n")
            seat.read_until("Approve exactly this? [y/N]: ")
            seat.type("n\n")
            code, rest = seat.finish()
        assert (code, f"{ticket.id} is not decided." in rest) == (1, True)

    @pytest.mark.parametrize("details", [{}, {"password": SECRET}, {"database": "prod"}])
    def test_ctrl_c_at_any_question_decides_nothing(self, service: Service, details: dict[str, str]) -> None:
        action = "wipe_database" if "database" in details else "reboot"
        ticket = SyncClient(service.url).request(action, "Please", details)
        with terminals.seated(service.home, "confirm", "approve", ticket.id) as seat:
            seat.read_until(": " if "database" in details else "[y/N]: ")
            while seat.process.poll() is None:  # one that comes just before the wait is not heard
                seat.type(terminals.CTRL_C)
                seat.read(time.monotonic() + 0.2)
            # To a shell the first two are 130. One that comes while it ends already ends it at once, or, in
            # the last moments of the interpreter, with 1: nothing was decided in any case.
            assert seat.process.returncode in (130, -signal.SIGINT, 1)
        assert json.loads(service.run("confirm", "show", ticket.id, "--json").stdout)["status"] == "pending"

    def test_question_is_asked_where_its_answer_comes_from(self, service: Service) -> None:
        """Else somebody who keeps the output in a file would say yes to what they do not see."""
        ticket = SyncClient(service.url).request("reboot", "Reboot it", {"host": "db1"})
        command = [str(program.FRONTDESK), "confirm", "approve", ticket.id, "--json"]
        screen, seat = pty.openpty()

        def begin(errors: int) -> subprocess.Popen[bytes]:
            pipe, env = subprocess.PIPE, program.environment(service.home)
            return subprocess.Popen(
                command, stdin=seat, stdout=pipe, stderr=errors, cwd=service.home, env=env
            )

        try:
            with begin(subprocess.PIPE) as process:
                _, refused = process.communicate(timeout=program.PATIENCE_SECONDS)
                assert (process.returncode, b"--yes" in refused) == (2, True)
            with begin(seat) as process:
                asked = terminals.Seat(process, screen)
                assert 'Its host: "db1"' in asked.read_until("Approve exactly this? [y/N]: ")
                asked.type("y\n")
                assert process.stdout
                assert json.loads(process.stdout.read())["status"] == "approved"
        finally:
            os.close(screen)
            os.close(seat)

    def test_deciding_takes_an_approvers_token(self, service: Service, tmp_path: Path) -> None:
        ticket = SyncClient(service.url).request("reboot", "Reboot it")
        stranger = tmp_path / "stranger"
        stranger.mkdir()
        for more in ({}, {"CONFIRMATION_TOKEN": "a-wrong-one"}):
            done = program.run(
                stranger, "confirm", "approve", ticket.id, "--yes", "--url", service.url, **more
            )
            assert done.returncode == 1
        right = {"CONFIRMATION_TOKEN": service.token}
        done = program.run(stranger, "confirm", "approve", ticket.id, "--yes", "--url", service.url, **right)
        assert done.returncode == 0

    def test_service_that_does_not_run_is_told_with_how_to_start_it(self, service: Service) -> None:
        service.kill()
        done = service.run("confirm", "list")
        assert done.returncode == 1
        assert "refused. Start it with: frontdesk run, or frontdesk confirm serve" in done.stderr

    def test_rules_are_added_listed_and_revoked(self, service: Service) -> None:
        arguments = ("--action", "restart", "--where", "host~db*", "--where", "times<3", "--expires-in", "2h")
        added = json.loads(service.run("confirm", "rules", "add", "allow", *arguments, "--json").stdout)
        assert added["conditions"] == [
            {"argument": "host", "test": "like", "value": "db*"},
            {"argument": "times", "test": "below", "value": 3},
        ]
        client = SyncClient(service.url)
        assert client.request("restart", "Restart it", {"host": "db1", "times": 1}).automatic
        assert not client.request("restart", "Restart it", {"host": "web1", "times": 1}).automatic
        assert added["id"] in service.run("confirm", "rules", "list").stdout
        assert service.run("confirm", "rules", "revoke", added["id"]).returncode == 0
        assert service.run("confirm", "rules", "revoke", added["id"]).returncode == 1
        assert not client.request("restart", "Restart it", {"host": "db2", "times": 1}).automatic

    def test_rule_that_may_not_be_meant_is_kept_with_a_note(self, service: Service) -> None:
        both = ["--approver", "local", "--approver", "token:approver"]
        rules = []
        for arguments, note in (
            (["deny"], "it denies everything"),
            (["ask", "--action", "**"], "no rule that allows has any effect"),
            (["ask", "--action", "x", "--approver", "token:nobody"], "token:nobody cannot decide"),
            (["ask", "--action", "x", "--quorum", "2"], "there are tokens for 1 person here"),
            (["ask", "--action", "x", "--quorum", "2", *both], "those named are 1 person, and it needs 2"),
        ):
            done = program.run(service.home, "confirm", "rules", "add", *arguments, "--json")
            assert (done.returncode, note in done.stderr) == (0, True), done.stderr
            rules.append(json.loads(done.stdout)["id"])
        revoked = program.run(service.home, "confirm", "rules", "revoke", rules[0], "--json")
        assert json.loads(revoked.stdout) == {"id": rules[0], "revoked": True}
        assert len(json.loads(program.run(service.home, "confirm", "rules", "--json").stdout)) == 4

    def test_rule_says_how_long_it_holds_and_what_it_wants(self, service: Service) -> None:
        done = service.run("confirm", "rules", "add", "ask", "--action", "x", "--escalate-after", "60")
        assert "holds until it is revoked." in done.stdout
        done = service.run("confirm", "rules", "add", "allow", "--action", "y", "--expires-in", "2h")
        assert re.search(r"holds until \d{4}-", done.stdout)
        assert "told again after 60 s" in service.run("confirm", "rules").stdout

    def test_every_answer_about_a_request_has_one_shape_for_scripts(self, service: Service) -> None:
        client = SyncClient(service.url)
        first, second = (client.request("reboot", "Reboot it", {"number": number}) for number in (1, 2))
        shown = json.loads(service.run("confirm", "show", first.id, "--json").stdout)
        approved = json.loads(service.run("confirm", "approve", first.id, "--yes", "--json").stdout)
        denied = json.loads(service.run("confirm", "deny", second.id, "--json").stdout)
        erased = json.loads(service.run("confirm", "erase", second.id, "--yes", "--json").stdout)
        listed = json.loads(service.run("confirm", "list", "--status", "all", "--json").stdout)
        assert [each.keys() for each in (approved, denied, erased, *listed)] == [shown.keys()] * 5
        assert (approved["status"], denied["status"]) == ("approved", "denied")

    def test_no_rule_allows_what_is_always_asked(self, service: Service) -> None:
        client = SyncClient(service.url)
        with service.approver() as approver:
            rule = {"effect": "allow", "expires_at": "2999-01-01T00:00:00Z"}
            for action in sorted(HIGH_RISK_ACTIONS):
                with pytest.raises(httpx.HTTPStatusError, match="400"):
                    approver.post("/rules", action=action, **rule)
                assert not client.request(action, "Do it").automatic
        done = service.run("confirm", "rules", "add", "allow", "--action", "wipe_*", "--expires-in", "1h")
        assert done.returncode == 1
        assert done.stderr == "Error: The rule for 'wipe_*' cannot be used: it covers what is always asked\n"


@contextmanager
def asking(
    service: Service,
    *arguments: str,
    cwd: Path | None = None,
    env: dict[str, str] | None = None,
    **more: Any,
) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A command that waits for somebody, and the id of its request."""
    command = [
        program.FRONTDESK,
        "confirm",
        "run",
        "--action",
        "run_command",
        "--url",
        service.url,
        *arguments,
    ]
    with forks.popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=program.environment(service.home) | (env or {}),
        cwd=cwd or service.home,
        text=True,
        **{"stdin": subprocess.DEVNULL} | more,
    ) as process:
        try:
            yield process, read_id(process)
        finally:
            process.kill()


def read_id(process: subprocess.Popen[str]) -> str:
    """The id that the program says it waits for; before that the system may complain of its environment."""
    assert process.stderr is not None
    told = ""
    for line in process.stderr:
        told += line
        if found := WAITING.search(line):
            return found[1]
    raise AssertionError(told)


def approve(service: Service, confirmation_id: str) -> dict[str, Any]:
    """Approve it, by the digest of what was shown; what was shown."""
    return approve_late(service, confirmation_id)()


def approve_late(service: Service, confirmation_id: str) -> Callable[[], dict[str, Any]]:
    """Look at it now, and approve what was seen then."""
    with service.approver() as approver:
        shown: dict[str, Any] = approver.get(f"/confirm/{confirmation_id}")

    def decide() -> dict[str, Any]:
        with service.approver() as approver:
            approver.post(f"/confirm/{confirmation_id}/approve", digest=shown["digest"])
        return shown

    return decide


def finish(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    written, errors_written = process.communicate(timeout=program.PATIENCE_SECONDS)
    return process.returncode, written, errors_written


PRINT = "import json, os, sys; print(json.dumps([sys.argv[1:], os.getcwd(), dict(os.environ)]))"


class TestRun:
    def test_exactly_the_approved_command_runs(self, service: Service) -> None:
        arguments = (
            "--env",
            "COLOUR=dark red",
            "--",
            sys.executable,
            "-c",
            PRINT,
            "a  b ",
            "",
            "$HOME; ls",
            "--",
        )
        with asking(service, *arguments, env={"SECRET": "not passed on"}) as (process, asked):
            shown = approve(service, asked)["details"]
            code, written, _ = finish(process)
        assert code == 0
        argv, cwd, env = json.loads(written)
        assert shown["argv"] == [sys.executable, "-c", PRINT, *argv]
        assert argv == ["a  b ", "", "$HOME; ls", "--"]
        assert shown["cwd"] == cwd
        assert shown["env"] == {name: env[name] for name in shown["env"]}
        assert set(env) - set(shown["env"]) <= {"LC_CTYPE", "__CF_USER_TEXT_ENCODING"}
        assert (env["COLOUR"], "SECRET" in env) == ("dark red", False)
        assert shown["executable"]["path"] == os.path.realpath(sys.executable)

    def test_command_gets_no_input_unless_people_see_it(self, service: Service) -> None:
        with asking(service, "--", "sh", stdin=subprocess.PIPE) as (process, asked):
            assert approve(service, asked)["details"]["stdin"] is None
            assert process.stdin
            process.stdin.write("echo PWNED\n")
            assert finish(process)[:2] == (0, "")

    def test_terminal_is_no_input_either(self, service: Service) -> None:
        arguments = ("confirm", "run", "--action", "x", "--url", service.url, "--", "sh", "-c", "cat; tty")
        with program.start(service.home, *arguments, terminal=True) as process:
            found = WAITING.search(program.read_until(process, "is believed."))
            assert found
            program.write(process, "echo PWNED\n")
            approve(service, found[1])
            assert "not a tty" in program.finish(process)[1]

    def test_input_is_read_first_shown_and_given_as_it_was_approved(
        self, service: Service, tmp_path: Path
    ) -> None:
        script = tmp_path / "script.sh"
        script.write_text(f"echo one\n# token={SECRET}\necho two \n")
        with (
            script.open() as opened,
            asking(service, "--stdin", "--", "sh", stdin=opened) as (process, asked),
        ):
            script.write_text("echo PWNED\n" * 5)
            shown = approve(service, asked)["details"]["stdin"]
            assert finish(process)[:2] == (0, "one\ntwo\n")
        assert shown["text"] == f"echo one\n# token={SECRET}\necho two \n"
        assert shown["size"] == len(shown["text"])
        assert shown["sha256"] == hashlib.sha256(shown["text"].encode()).hexdigest()
        told = service.run("confirm", "show", asked).stdout
        assert '"echo two␣\\n"' in told
        assert "1 value is hidden: stdin.text (12 characters)." in told

    @pytest.mark.parametrize(
        "given",
        [b"", b"\xff\x00binary", b"a\0b", b"x" * (1024 * 1024)],
        ids=["empty", "no text", "zero", "long"],
    )
    def test_input_that_is_no_short_text_is_shown_by_its_size_and_digest(
        self, service: Service, tmp_path: Path, given: bytes
    ) -> None:
        (tmp_path / "input").write_bytes(given)
        arguments = ("--stdin", "--", "cp", "/dev/stdin", "output")
        with (
            (tmp_path / "input").open() as opened,
            asking(service, *arguments, stdin=opened) as (process, asked),
        ):
            shown = approve(service, asked)["details"]["stdin"]
            assert finish(process)[0] == 0
        digest = hashlib.sha256(given).hexdigest()
        assert shown == {"sha256": digest, "size": len(given), "text": None if given else ""}
        assert (tmp_path / "output").read_bytes() == given

    def test_too_much_input_is_refused_before_anybody_is_asked(self, service: Service) -> None:
        arguments = ("confirm", "run", "--action", "x", "--url", service.url, "--stdin", "--", "cat")
        done = program.run(service.home, *arguments, given=b"x" * (1024 * 1024 + 1))
        assert (done.returncode, "longer than 1048576 bytes" in done.stderr) == (125, True)
        with service.approver() as approver:
            assert approver.pending() == []

    def test_other_open_files_are_not_passed_on_and_the_umask_is_seen(self, service: Service) -> None:
        read, write = os.pipe()
        script = f"import os; print(oct(os.umask(0)))\ntry: os.fstat({read})\nexcept OSError: print('closed')"
        command = ("--", sys.executable, "-c", script)
        with asking(service, *command, pass_fds=(read,), umask=0o027) as (process, asked):
            assert approve(service, asked)["details"]["umask"] == "0027"
            assert finish(process)[1] == "0o27\nclosed\n"
        os.close(read)
        os.close(write)

    def test_exit_code_and_output_are_the_commands(self, service: Service) -> None:
        with asking(service, "--", "sh", "-c", "echo out; echo err >&2; exit 7") as (process, asked):
            approve(service, asked)
            code, written, told = finish(process)
            assert (code, written, told.splitlines()[-1]) == (7, "out\n", "err")

    def test_signal_ends_the_command_itself(self, service: Service) -> None:
        with asking(service, "--", "sh", "-c", "kill -TERM $$") as (process, asked):
            approve(service, asked)
            assert finish(process)[0] == -signal.SIGTERM

    def test_broken_pipe_ends_the_command_as_usual(self, service: Service) -> None:
        script = "yes | head -1; echo ${PIPESTATUS[0]}"
        with asking(service, "--", "bash", "-c", script) as (process, asked):
            approve(service, asked)
            assert finish(process)[1] == f"y\n{128 + signal.SIGPIPE}\n"

    def test_denied_command_does_not_run(self, service: Service, tmp_path: Path) -> None:
        with asking(service, "--", "touch", "done") as (process, asked), service.approver() as approver:
            approver.post(f"/confirm/{asked}/deny", reason="no")
            code, written, told = finish(process)
        assert (code, written) == (125, "")
        assert "was denied by token:approver (no)" in told
        assert f"The service at {service.url} says so." in told
        assert not (tmp_path / "done").exists()

    def test_service_that_is_believed_is_named(self, service: Service) -> None:
        with asking(service, "--", "echo", "done") as (process, asked):
            assert process.stderr
            assert process.stderr.readline() == f"The service at {service.url} was asked, and is believed.\n"
            approve(service, asked)
            _, written, told = finish(process)
        assert written == "done\n"
        assert told == f"Approved by token:approver, says the service at {service.url}.\n"

    def test_command_that_a_rule_allows_waits_for_nobody(self, service: Service) -> None:
        rule = ("allow", "--action", "run_command", "--expires-in", "1h")
        assert service.run("confirm", "rules", "add", *rule).returncode == 0
        arguments = ("--action", "run_command", "--url", service.url, "--", "echo", "done")
        done = program.run(service.home, "confirm", "run", *arguments)
        assert done.stdout == "done\n"
        assert re.fullmatch(rf"The service at {service.url} allows it by a rule \(c_\w+\)\.\n", done.stderr)

    def test_stopping_the_wait_runs_nothing_and_says_that_the_request_goes_on_waiting(
        self, service: Service, tmp_path: Path
    ) -> None:
        with asking(service, "--", "touch", "done") as (process, asked):
            process.send_signal(signal.SIGINT)
            code, _, told = finish(process)
        assert (code, "Nothing was run" in told) == (130, True)
        assert f"{asked} is not withdrawn" in told
        assert not (tmp_path / "done").exists()
        show = told.rpartition("See it with: frontdesk ")[2].split()
        assert json.loads(program.run(service.home, *show, "--json").stdout)["status"] == "pending"
        with asking(service, "--", "touch", "done") as (process, again):
            assert again == asked
            approve(service, asked)
            assert finish(process)[0] == 0
        assert (tmp_path / "done").exists()

    def test_command_that_was_stopped_and_then_approved_asks_anew(self, service: Service) -> None:
        with asking(service, "--", "echo", "done") as (process, asked):
            process.send_signal(signal.SIGINT)
            assert "after a yes it asks anew" in finish(process)[2]
        approve(service, asked)
        with asking(service, "--", "echo", "done") as (process, again):
            assert again != asked
            approve(service, again)
            assert finish(process)[1] == "done\n"

    def test_stopping_after_the_end_of_the_service_says_that_nothing_is_known(self, service: Service) -> None:
        with asking(service, "--", "touch", "done") as (process, asked):
            service.kill()
            process.send_signal(signal.SIGINT)
            code, _, told = finish(process)
        assert (code, f"What becomes of {asked} is not known" in told) == (130, True)

    @pytest.mark.parametrize(
        ("command", "code", "words"),
        [
            (["no-such-program"], 127, "there is no such program"),
            (["./plain.txt"], 126, "no program that can be run"),
            (["touch", b"\xff".decode("utf-8", "surrogateescape")], 125, "not UTF-8"),
        ],
        ids=["missing", "not executable", "not text"],
    )
    def test_what_cannot_be_run_is_not_asked_for(
        self, service: Service, command: list[str], code: int, words: str
    ) -> None:
        (service.home / "plain.txt").write_text("no program")
        done = program.run(
            service.home, "confirm", "run", "--action", "x", "--url", service.url, "--", *command
        )
        assert (done.returncode, words in done.stderr) == (code, True)
        with service.approver() as approver:
            assert approver.pending() == []

    def test_without_a_service_it_ends_at_once(self, tmp_path: Path) -> None:
        address = f"http://127.0.0.1:{loopback.free_port()}"
        done = program.run(
            tmp_path, "confirm", "run", "--action", "x", "--url", address, "--", "touch", "done"
        )
        assert done.returncode == 125
        assert "cannot be asked" in done.stderr
        assert not (tmp_path / "done").exists()

    def test_program_that_the_system_does_not_run_is_told(self, service: Service) -> None:
        broken = service.home / "broken"
        broken.write_bytes(b"\x7fELF and nothing else")
        broken.chmod(0o755)
        with asking(service, "--", "./broken") as (process, asked):
            approve(service, asked)
            assert finish(process)[0] == 126


class TestBypasses:
    """What was published against others: approve A, run B."""

    def test_trailing_space_is_another_action(self, service: Service) -> None:
        with (
            asking(service, "--", "echo", "x") as (plain, asked),
            asking(service, "--", "echo", "x ") as (spaced, other),
        ):
            assert asked != other
            digests = {approve(service, each)["digest"] for each in (asked, other)}
            assert len(digests) == 2
            assert (finish(plain)[1], finish(spaced)[1]) == ("x\n", "x \n")

    def test_approval_of_one_spelling_does_not_run_the_other(self, service: Service) -> None:
        with (
            asking(service, "--", "echo", "x ") as (spaced, _),
            asking(service, "--", "echo", "x") as (_, asked),
        ):
            approve(service, asked)
            with service.approver() as approver:
                assert len(approver.pending()) == 1
            spaced.send_signal(signal.SIGINT)
            assert finish(spaced)[1] == ""

    def test_symlinked_directory_is_resolved_once_and_for_all(self, service: Service, tmp_path: Path) -> None:
        safe, precious = tmp_path / "safe", tmp_path / "precious"
        link = tmp_path / "link"
        for folder in (safe, precious):
            folder.mkdir()
        link.symlink_to(safe)
        with asking(service, "--", "touch", "done", cwd=link) as (process, asked):
            link.unlink()
            link.symlink_to(precious)
            assert approve(service, asked)["details"]["cwd"] == str(safe)
            assert finish(process)[0] == 0
        assert ((safe / "done").exists(), (precious / "done").exists()) == (True, False)

    @pytest.mark.parametrize("how", ["a link", "another directory", "gone"])
    def test_directory_that_was_swapped_is_refused(self, service: Service, tmp_path: Path, how: str) -> None:
        safe, precious = tmp_path / "safe", tmp_path / "precious"
        for folder in (safe, precious):
            folder.mkdir()
        with asking(service, "--", "touch", "done", cwd=safe) as (process, asked):
            decide = approve_late(service, asked)
            safe.rename(tmp_path / "away")
            if how == "a link":
                safe.symlink_to(precious)
            elif how == "another directory":
                precious.rename(safe)
            decide()
            code, _, told = finish(process)
        assert (code, "is not what was approved" in told) == (125, True)
        assert not list(tmp_path.rglob("done"))

    @pytest.mark.parametrize("how", ["content", "a link", "gone"])
    def test_program_that_was_swapped_is_refused(self, service: Service, tmp_path: Path, how: str) -> None:
        tool, evil = tmp_path / "tool", tmp_path / "evil"
        for file, word in ((tool, "good"), (evil, "evil")):
            file.write_text(f"#!/bin/sh\necho {word}\n")
            file.chmod(0o755)
        with asking(service, "--", "./tool") as (process, asked):
            decide = approve_late(service, asked)
            if how == "content":
                tool.write_text(evil.read_text())
            else:
                tool.unlink()
            if how == "a link":
                tool.symlink_to(evil)
            decide()
            code, written, told = finish(process)
        assert (code, written) == (125, "")
        assert "is not what was approved" in told

    @pytest.mark.parametrize("how", ["content", "a link", "gone", "first in the path"])
    def test_interpreter_that_was_swapped_is_refused(
        self, service: Service, tmp_path: Path, how: str
    ) -> None:
        first, second = tmp_path / "first", tmp_path / "second"
        evil = tmp_path / "evil"
        for folder in (first, second):
            folder.mkdir()
        for file, word in ((second / "shell", "good"), (evil, "evil")):
            file.write_text(f"#!/bin/sh\necho {word}\n")
            file.chmod(0o755)
        tool = tmp_path / "tool"
        tool.write_text("#!/usr/bin/env shell\n")
        tool.chmod(0o755)
        path = f"PATH={first}:{second}:{os.environ['PATH']}"
        with asking(service, "--env", path, "--", "./tool") as (process, asked):
            decide = approve_late(service, asked)
            if how == "content":
                (second / "shell").write_text(evil.read_text())
            elif how == "first in the path":
                evil.rename(first / "shell")
            else:
                (second / "shell").unlink()
            if how == "a link":
                (second / "shell").symlink_to(evil)
            shown = decide()
            code, written, told = finish(process)
        assert [each["path"].rpartition("/")[2] for each in shown["details"]["interpreters"]][1] == "shell"
        assert (code, written) == (125, "")
        assert "is not what was approved" in told

    def test_script_runs_with_the_approved_interpreter(self, service: Service, tmp_path: Path) -> None:
        tool = tmp_path / "tool"
        tool.write_text("#!/usr/bin/env -S sh -e\necho $0 $1\n")
        tool.chmod(0o755)
        with asking(service, "--", "./tool", "x") as (process, asked):
            shown = approve(service, asked)["details"]["interpreters"]
            assert finish(process)[:2] == (0, f"{tool} x\n")
        assert [each["path"] for each in shown[:2]] == [
            os.path.realpath(each) for each in ("/usr/bin/env", "/bin/sh")
        ]

    def test_link_to_a_program_is_resolved_before_people_see_it(
        self, service: Service, tmp_path: Path
    ) -> None:
        good, evil, tool = (tmp_path / name for name in ("good", "evil", "tool"))
        for file in (good, evil):
            file.write_text(f"#!/bin/sh\necho {file.name}\n")
            file.chmod(0o755)
        tool.symlink_to(good)
        with asking(service, "--", "./tool") as (process, asked):
            tool.unlink()
            tool.symlink_to(evil)
            assert approve(service, asked)["details"]["executable"]["path"] == str(good)
            assert finish(process)[:2] == (0, "good\n")

    def test_environment_reaches_the_command_only_when_people_see_it(self, service: Service) -> None:
        evil = dict.fromkeys(
            ("LD_PRELOAD", "BASH_ENV", "ENV", "GIT_SSH_COMMAND", "IFS", "NODE_OPTIONS"), "/evil"
        )
        with asking(service, "--", "env", env=evil) as (process, asked):
            assert not evil.keys() & approve(service, asked)["details"]["env"].keys()
            assert "/evil" not in finish(process)[1]
        named = ("--env", "BASH_ENV", "--env", "IFS=/other", "--env", "NOT_SET")
        with asking(service, *named, "--", "env", env=evil) as (process, asked):
            shown = approve(service, asked)["details"]["env"]
            assert (shown["BASH_ENV"], shown["IFS"], "NOT_SET" in shown) == ("/evil", "/other", False)
            written = finish(process)[1].splitlines()
        assert {"BASH_ENV=/evil", "IFS=/other"} <= set(written)
        assert sorted(written) == sorted(f"{name}={value}" for name, value in shown.items())

    @pytest.mark.parametrize(
        ("command", "words"),
        [
            (["rm", "-rf", "--", "--token", "victim"], ['"victim"']),
            (["rm", "-rf", "--token", "/tmp/victim"], ['"/tmp/victim"']),
            (["env", "TOKEN=rm -rf /srv", "sh", "-c", "$TOKEN"], ["rm -rf /srv"]),
        ],
    )
    def test_target_cannot_pass_for_a_secret(
        self, service: Service, command: list[str], words: list[str]
    ) -> None:
        with asking(service, "--env", "TOKEN=rm -rf /var", "--", *command) as (process, asked):
            shown = service.run("confirm", "show", asked).stdout
            process.send_signal(signal.SIGINT)
            finish(process)
        for word in (*words, 'TOKEN: "rm -rf /var"'):
            assert word in shown
        assert "hidden" not in shown

    def test_env_s_is_shown_as_it_is_and_no_rule_for_env_covers_it(self, service: Service) -> None:
        """`env -S` splits one argument into a command: a rule for one use of env allows no other."""
        with asking(service, "--", "env", "echo", "harmless") as (process, asked):
            digest = approve(service, asked)["digest"]
            assert finish(process)[1] == "harmless\n"
        rule = ("--action", "run_command", "--digest", digest, "--expires-in", "1h")
        assert service.run("confirm", "rules", "add", "allow", *rule).returncode == 0
        allowed = program.run(
            service.home,
            *(
                "confirm",
                "run",
                "--action",
                "run_command",
                "--url",
                service.url,
                "--",
                "env",
                "echo",
                "harmless",
            ),
        )
        assert (allowed.returncode, allowed.stdout) == (0, "harmless\n")
        for evil in (["env", "-S", "echo harmless; touch done"], ["env", "-Secho harmless"], ["env", "echo"]):
            with asking(service, "--", *evil) as (process, asked):
                with service.approver() as approver:
                    assert approver.get(f"/confirm/{asked}")["details"]["argv"] == evil
                process.send_signal(signal.SIGINT)
                assert finish(process)[1] == ""

    def test_approval_is_used_once(self, service: Service) -> None:
        with asking(service, "--", "echo", "once") as (process, asked):
            shown = approve(service, asked)
            assert finish(process)[1] == "once\n"
        with service.approver() as approver:
            (kept,) = approver.get("/confirm")["confirmations"]
        assert kept["redeemed_at"]
        stolen = Ticket(id=asked, action="run_command", digest=shown["digest"])
        with pytest.raises(errors.GrantUnusable):
            SyncClient(service.url).redeem(stolen)


class TestKills:
    @pytest.mark.prove
    def test_pending_requests_survive_kill_and_restart(self, tmp_path: Path) -> None:
        """As many as may wait at once, or fewer; then they are decided and carried out."""
        wanted, at_once = count(20, 200), 10
        survived = 0
        for first in range(0, wanted, at_once):
            with services.serving(tmp_path, "--rate-limit", "100000") as service:
                client = SyncClient(service.url)
                asked = [client.request("act", "Do it", {"n": n}) for n in range(first, first + at_once)]
                service.kill()
            with services.serving(tmp_path) as service, service.approver() as approver:
                assert {each["id"] for each in approver.pending()} == {ticket.id for ticket in asked}
                client = SyncClient(service.url)
                for number, ticket in enumerate(asked, first):
                    approver.post(f"/confirm/{ticket.id}/approve", digest=ticket.digest)
                    assert client.redeem(ticket).details == {"n": number}
                    survived += 1
        assert survived == wanted
        assert program.run(tmp_path, "audit", "verify").returncode == 0
        print(f"{survived} of {wanted} pending requests survived kill -9, and the audit log holds")

    @pytest.mark.prove
    def test_kill_between_decision_and_redeem_runs_the_action_once(self, tmp_path: Path) -> None:
        """The service dies when the decision is made; the client that waits goes on with the next one."""
        rounds = count(3, 30)
        port = loopback.free_port()
        runs = 0
        for number in range(rounds):
            with services.serving(tmp_path, "--rate-limit", "100000", port=port) as service:
                client = SyncClient(service.url)
                ticket = client.request("deploy_production", "Deploy it", {"number": number})
                with service.approver() as approver:
                    approver.post(f"/confirm/{ticket.id}/approve", digest=ticket.digest)
                service.kill()
            with ThreadPoolExecutor() as pool:
                redeeming = [pool.submit(client.redeem, ticket) for _ in range(3)]
                with services.serving(tmp_path, "--rate-limit", "100000", port=port):
                    outcomes = [each.exception() for each in redeeming]
            runs += outcomes.count(None)
            refused = [error for error in outcomes if error is not None]
            assert all(isinstance(error, errors.GrantUnusable) for error in refused)
        assert runs == rounds
        assert program.run(tmp_path, "audit", "verify").returncode == 0
        print(f"{runs} of {rounds} approved actions ran, each once, after a kill before the redeem")

    def test_command_that_waits_outlives_a_kill_of_the_service(self, tmp_path: Path) -> None:
        port = loopback.free_port()
        with (
            services.serving(tmp_path, port=port) as first,
            asking(first, "--", "echo", "done") as (process, asked),
        ):
            first.kill()
            with services.serving(tmp_path, port=port) as second:
                approve(second, asked)
                assert finish(process)[:2] == (0, "done\n")


class TestAudit:
    @pytest.fixture
    def home(self, tmp_path: Path) -> Path:
        """A home with a log of three requests, one of them carried out."""
        with services.serving(tmp_path) as service, service.approver() as approver:
            client = SyncClient(service.url)
            *_, ticket = (client.request("reboot", "Reboot it", {"number": number}) for number in range(3))
            approver.post(f"/confirm/{ticket.id}/approve")
            client.redeem(ticket)
        return tmp_path

    def test_log_is_verified_exported_and_shown(self, home: Path) -> None:
        verified = json.loads(program.run(home, "audit", "verify", "--json").stdout)
        assert (verified["rows"], verified["fault"]) == (5, None)
        assert program.run(home, "audit", "export", "-o", "log.jsonl").returncode == 0
        assert "5 rows hold" in program.run(home, "audit", "verify", "--from", "log.jsonl").stdout
        kinds = [
            json.loads(line)["kind"]
            for line in program.run(home, "audit", "tail", "--json").stdout.splitlines()
        ]
        assert kinds == ["submitted", "submitted", "submitted", "approved", "redeemed"]
        assert len(program.run(home, "audit", "tail", "-n", "2").stdout.splitlines()) == 2

    def test_running_service_is_asked_instead(self, home: Path) -> None:
        alone = program.run(home, "audit", "export").stdout
        with services.serving(home) as service:
            assert service.run("audit", "export").stdout == alone
            assert "5 rows hold" in service.run("audit", "verify").stdout
            assert len(service.run("audit", "tail", "-n", "3").stdout.splitlines()) == 3
            stranger = service.run("audit", "verify", CONFIRMATION_TOKEN="a-wrong-one")
            assert stranger.returncode == 1
        with services.serving(home, "--db-path", "empty.db") as service:
            assert service.run("audit", "tail", "--db-path", "empty.db").stdout == "The log is empty.\n"
            assert service.run("audit", "tail", "--json", "--db-path", "empty.db").stdout == ""

    def test_following_shows_what_happens(self, home: Path) -> None:
        arguments = ("audit", "tail", "-f", "-n", "1", "--url")
        with services.serving(home) as service, program.start(home, *arguments, service.url) as process:
            program.read_until(process, "redeemed")
            SyncClient(service.url).request("reboot", "Reboot it", {"number": 4})
            program.read_until(process, "submitted")
            process.send_signal(signal.SIGINT)
            assert process.wait(program.PATIENCE_SECONDS) == 130

    @pytest.mark.parametrize(
        ("statement", "row", "change"),
        [
            ("UPDATE audit SET body = CAST(lower(CAST(body AS TEXT)) AS BLOB) WHERE number = 2", 2, "edited"),
            ("DELETE FROM audit WHERE number = 3", 3, "missing"),
        ],
    )
    def test_row_that_was_changed_is_named(self, home: Path, statement: str, row: int, change: str) -> None:
        services.tamper(home / ".frontdesk" / "state.db", statement)
        done = program.run(home, "audit", "verify")
        assert done.returncode == 1
        assert done.stdout.startswith(f"Row {row} is {change}: ")

    def test_rows_taken_from_the_end_are_missed_by_the_anchor_and_the_store(self, home: Path) -> None:
        anchored = program.run(home, "audit", "verify", "--new-anchor", "--anchor", "anchor.txt")
        assert (anchored.returncode, len((home / "anchor.txt").read_text().splitlines())) == (0, 1)
        services.tamper(home / ".frontdesk" / "state.db", "DELETE FROM audit WHERE number = 5")
        done = program.run(home, "audit", "verify")
        assert (done.returncode, done.stdout.startswith("4 rows hold, and the store is not")) == (1, True)
        done = program.run(home, "audit", "verify", "--anchor", "anchor.txt")
        assert (done.returncode, done.stdout.startswith("Row 5 is truncated: ")) == (1, True)

    def test_anchor_grows_with_the_log(self, home: Path) -> None:
        begun = program.run(home, "audit", "verify", "--new-anchor", "--anchor", "anchor.txt")
        assert begun.returncode == 0
        with services.serving(home) as service:
            SyncClient(service.url).request("reboot", "Reboot it", {"number": 4})
            assert service.run("audit", "verify", "--anchor", "anchor.txt").returncode == 0
            assert service.run("audit", "verify", "--anchor", "anchor.txt").returncode == 0
        numbers = [line.split()[0] for line in (home / "anchor.txt").read_text().splitlines()]
        assert numbers == ["5", "6"]

    def test_anchor_that_is_none_is_refused(self, home: Path) -> None:
        (home / "anchor.txt").write_text("nonsense\n")
        done = program.run(home, "audit", "verify", "--anchor", "anchor.txt")
        assert (done.returncode, "anchor" in done.stderr) == (1, True)


class TestPauses:
    def test_agent_that_was_denied_too_often_is_listed_and_lifted(self, service: Service) -> None:
        client = SyncClient(service.url)
        assert "Nobody is paused" in service.run("confirm", "pauses").stdout
        told = []
        for number in range(MOST_DENIALS):
            ticket = client.request(f"act {number}", "Please", {"number": number})
            done = service.run("confirm", "deny", ticket.id)
            assert done.returncode == 0
            told.append(done.stderr)
        assert told[:-1] == [""] * (MOST_DENIALS - 1)
        assert "nobody is asked for programs without a token any more" in told[-1]
        assert told[-1].endswith("To have people asked again: frontdesk confirm lift anybody\n")
        with pytest.raises(errors.NotAllowed, match="paused"):
            client.request("another", "Please", {"number": -1})
        assert "anybody" in service.run("confirm", "pauses").stdout
        (pause,) = json.loads(service.run("confirm", "pauses", "--json").stdout)
        assert pause["denials"] == MOST_DENIALS
        assert service.run("confirm", "lift", "token:other").returncode == 1
        assert "asked for anybody again" in service.run("confirm", "lift", "anybody").stdout
        client.request("another", "Please", {"number": -1})


class TestErase:
    def test_decided_request_is_forgotten_and_the_log_stays_whole(self, service: Service) -> None:
        client = SyncClient(service.url)
        ticket = client.request("reboot", "Reboot it", {"host": "db-of-ann"})
        waiting = service.run("confirm", "erase", ticket.id, "--yes")
        assert waiting.returncode == 1
        assert "still waits" in waiting.stderr
        assert service.run("confirm", "deny", ticket.id, "--reason", "not for ann").returncode == 0
        erased = json.loads(service.run("confirm", "erase", ticket.id, "--yes", "--json").stdout)
        assert (erased["details"], erased["digest"]) == (None, ticket.digest)
        assert service.run("confirm", "erase", ticket.id, "--yes").returncode == 0
        shown = service.run("confirm", "show", ticket.id, "--json").stdout
        assert "db-of-ann" not in shown
        assert "not for ann" not in shown
        assert service.run("audit", "verify").returncode == 0

    def test_nobody_is_asked_where_nobody_sits(self, service: Service) -> None:
        ticket = SyncClient(service.url).request("reboot", "Reboot it")
        done = service.run("confirm", "erase", ticket.id)
        assert (done.returncode, "--yes" in done.stderr) == (2, True)


class TestForging:
    def test_reason_writes_no_line_of_its_own(self, service: Service) -> None:
        ticket = SyncClient(service.url).request("reboot", "Reboot it")
        with service.approver() as approver:
            approver.post(f"/confirm/{ticket.id}/deny", reason="no\nstatus       approved")
        shown = service.run("confirm", "show", ticket.id).stdout.splitlines()
        assert [line for line in shown if line.startswith("status ")] == ["status       denied"]
        assert "reason       no status approved" in shown

    @pytest.mark.parametrize("name", ["action", "requester"])
    def test_name_of_several_lines_is_refused(self, service: Service, name: str) -> None:
        data = {"action": "reboot", "description": "Reboot it", name: 'wipe\naction: "list_files"'}
        refused = httpx.post(f"{service.url}/confirm", json=data)
        assert refused.status_code == 400
        assert name in refused.text
        assert service.run("confirm", "list").stdout.startswith("Nothing waits")


def test_file_that_is_not_there_is_not_verified(tmp_path: Path) -> None:
    done = program.run(tmp_path, "audit", "verify", "--db-path", "nowhere.db")
    assert (done.returncode, "nothing was verified" in done.stderr) == (1, True)


def test_owners_token_is_not_shown_to_whoever_has_the_port(tmp_path: Path) -> None:
    with services.serving(tmp_path) as service:
        token = service.token
    heard: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as squatter:
        squatter.settimeout(0.5)
        port = squatter.getsockname()[1]
        done = program.run(tmp_path, "confirm", "list", CONFIRMATION_PORT=str(port))
        with contextlib.suppress(TimeoutError):
            heard.append(squatter.accept()[0].recv(10_000))
    assert done.returncode == 1
    assert not any(token.encode() in each for each in heard)
