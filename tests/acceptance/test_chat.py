"""The chat, as somebody at a terminal has it."""

import asyncio
import contextlib
import json
import re
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from frontdesk import errors
from frontdesk.cli import asking
from frontdesk.cli.chat.questions import ARMED_AFTER_SECONDS
from tests import counts
from tests.acceptance import forks
from tests.acceptance.program import (
    FRONTDESK,
    PATIENCE_SECONDS,
    environment,
    read_until,
    run,
    start,
    write,
)
from tests.acceptance.terminals import CTRL_C, CTRL_D, Seat, seated

TIMES = counts.count(8, 40)
POLL_SECONDS = 0.05
AGENT = {"FRONTDESK_AGENT_DRIVER": "scripted", "FRONTDESK_SESSION_RESET_MODE": "none"}
PROMPT = "> "
GOODBYE = "Goodbye."


@contextlib.contextmanager
def running(home: Path) -> Iterator[subprocess.Popen[bytes]]:
    """The gateway as a user runs it."""
    with (home / "run.log").open("wb") as log:
        command = [str(FRONTDESK), "run", "--port", "0"]
        process = forks.popen(
            command, stdout=log, stderr=log, env=environment(home, **AGENT), cwd=home, start_new_session=True
        )
        try:
            wait_for_gateway(home, process)
            yield process
        finally:
            process.kill()
            process.wait()


def wait_for_gateway(home: Path, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < deadline:
        assert process.poll() is None, (home / "run.log").read_text()
        try:
            asyncio.run(asking.reach_terminal(home / ".frontdesk"))
        except errors.GatewayUnreachable:
            time.sleep(POLL_SECONDS)
        else:
            return
    raise AssertionError("the gateway does not answer")


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The home of somebody whose gateway runs."""
    folder = tmp_path_factory.mktemp("home")
    with running(folder):
        yield folder


def leave(seat: Seat) -> None:
    seat.type(CTRL_D)
    code, rest = seat.finish()
    assert (code, GOODBYE in rest) == (0, True)


def test_one_ctrl_c_at_the_empty_prompt_is_enough(home: Path) -> None:
    for number in range(TIMES):
        with seated(home, "chat", **AGENT) as seat:
            seat.read_until(PROMPT)
            seat.type(CTRL_C)
            code, rest = seat.finish()
        assert (code, GOODBYE in rest) == (0, True), f"at the attempt {number + 1}"


@pytest.mark.parametrize("arguments", [("chat", "--start"), ("run", "--port", "0", "--chat")])
def test_ctrl_c_on_a_line_clears_it_and_the_next_one_leaves(
    tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    with seated(tmp_path, *arguments, **AGENT) as seat:
        seat.read_until(PROMPT)
        seat.type("half")
        seat.read_until("half")
        seat.type(CTRL_C)
        seat.read_until(PROMPT)
        seat.type("whole\n")
        seat.read_until("echo: whole")
        seat.read_until(PROMPT)
        seat.type(CTRL_C)
        code, rest = seat.finish()
    assert (code, GOODBYE in rest) == (0, True)


def test_ctrl_d_at_the_prompt_ends_with_a_goodbye(home: Path) -> None:
    with seated(home, "chat", **AGENT) as seat:
        seat.read_until(PROMPT)
        leave(seat)


def test_answer_is_shown_once_and_tool_calls_beside_it(home: Path) -> None:
    with seated(home, "chat", "--chat", "tools", **AGENT) as seat:
        seat.read_until(PROMPT)
        seat.type('!say I look; !sleep 0.5; !tool look {"path": "a"}; !sleep 0.5; !say It is there.\n')
        seat.read_until("\n")
        shown = seat.read_until(PROMPT)
        assert shown.splitlines() == ["I look", '· look {"path": "a"}', "It is there.", PROMPT]
        leave(seat)


def test_pieces_are_shown_as_they_come(home: Path) -> None:
    with seated(home, "chat", "--chat", "pieces", **AGENT) as seat:
        seat.read_until(PROMPT)
        seat.type("!say first words; !hang\n")
        seat.read_until("\n")
        seat.read_until("first words")
        seat.type(CTRL_C)
        seat.read_until(PROMPT)
        leave(seat)


def test_ctrl_c_stops_the_answer_and_the_next_message_is_answered(home: Path) -> None:
    with seated(home, "chat", "--chat", "stopped", **AGENT) as seat:
        for _ in range(5):
            seat.read_until(PROMPT)
            seat.type("!say working; !hang\n")
            seat.read_until("\n")
            seat.read_until("working")
            seat.type(CTRL_C)
            assert "Stopped." in seat.read_until(PROMPT)
            seat.type("hello\n")
            seat.read_until("\n")
            seat.read_until("echo: hello\r\n")
        seat.read_until(PROMPT)
        leave(seat)


def test_controls_in_an_answer_do_not_reach_the_terminal(home: Path) -> None:
    with seated(home, "chat", "--chat", "controls", **AGENT) as seat:
        seat.read_until(PROMPT)
        seat.type("!say a\x16\x1b[2Jb\n")  # the terminal takes the byte after ^V as it is
        seat.read_until("\n")
        assert "\x1b" not in seat.read_until(PROMPT)
        leave(seat)


def test_commands_are_answered(home: Path) -> None:
    with seated(home, "chat", "--chat", "commands", **AGENT) as seat:
        seat.read_until(PROMPT)
        seat.type("/help\n")
        assert "/resume" in seat.read_until(PROMPT)
        leave(seat)


def test_answers_that_came_while_nobody_looked_are_shown_first(home: Path) -> None:
    async def leave_word() -> None:
        terminal = await asking.reach_terminal(home / ".frontdesk")
        receipt = await terminal.accept("hello", "away")
        async for _ in terminal.follow(receipt["turn_id"]):
            pass

    asyncio.run(leave_word())
    with seated(home, "chat", "--chat", "away", **AGENT) as seat:
        shown = seat.read_until(PROMPT)
        assert shown.index("While you were away") < shown.index("echo: hello")
        leave(seat)
    with seated(home, "chat", "--chat", "away", **AGENT) as seat:
        assert "echo: hello" not in seat.read_until(PROMPT)
        leave(seat)


def test_gateway_that_goes_is_told(tmp_path: Path) -> None:
    with running(tmp_path) as gateway, seated(tmp_path, "chat", **AGENT) as seat:
        seat.read_until(PROMPT)
        seat.type("!say here; !hang\n")
        seat.read_until("\n")  # what was typed comes back first
        seat.read_until("here")
        gateway.kill()
        code, rest = seat.finish()
    assert code == 1
    assert "stopped answering" in rest


def test_terminated_chat_lets_go_of_the_store(tmp_path: Path) -> None:
    with seated(tmp_path, "chat", "--start", **AGENT) as seat:
        seat.read_until(PROMPT)
        seat.process.send_signal(signal.SIGTERM)
        code, rest = seat.finish()
    assert (code, GOODBYE in rest) == (0, True)
    assert run(tmp_path, "sessions", "list").returncode == 0


def test_one_message_is_answered_on_the_standard_output(home: Path) -> None:
    done = run(home, "chat", "--chat", "once", "-m", "!say Well,; !tool look; !say hello.", **AGENT)
    assert (done.returncode, done.stdout) == (0, "Well,\nhello.\n")
    assert "look" in done.stderr


def test_message_can_be_read_from_the_input(home: Path) -> None:
    done = run(home, "chat", "--chat", "once", "-m", "-", given="grüße\n" * 2, **AGENT)
    assert (done.returncode, done.stdout) == (0, "echo: grüße\ngrüße\n")


def test_message_that_is_not_answered_ends_in_an_exit_code(home: Path) -> None:
    done = run(home, "chat", "--chat", "once", "-m", "!fail", **AGENT)
    assert (done.returncode, done.stdout) == (1, "")
    assert "not answered" in done.stderr


def test_message_that_somebody_else_stopped_is_not_answered(home: Path) -> None:
    with start(
        home, "chat", "--chat", "stopped", "-m", "!say begun; !hang", terminal=False, **AGENT
    ) as process:
        read_until(process, "begun")
        assert run(home, "chat", "--chat", "stopped", "-m", "/stop", **AGENT).returncode == 0
        assert process.wait(PATIENCE_SECONDS) == 1


@pytest.mark.parametrize("message", ["!hang", "!say begun; !hang"])
def test_ctrl_c_stops_a_single_message_and_has_an_exit_code_of_its_own(home: Path, message: str) -> None:
    with start(home, "chat", "--chat", "left", "--json", "-m", message, terminal=False, **AGENT) as process:
        read_until(process, "accepted")
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE_SECONDS) == 130


def test_what_happens_can_be_read_by_a_script(home: Path) -> None:
    done = run(home, "chat", "--chat", "script", "--json", "-m", "hello", **AGENT)
    lines = done.stdout.splitlines()
    assert '"accepted"' in lines[0]
    assert '"done"' in lines[-1]


def test_lines_of_a_pipe_are_messages(home: Path) -> None:
    done = run(home, "chat", "--chat", "pipe", given="one\n\ntwo", **AGENT)
    assert (done.returncode, done.stdout) == (0, "echo: one\necho: two\n")


def test_lines_of_a_file_are_messages(home: Path) -> None:
    file = home / "messages"
    file.write_text("one\ntwo\n")
    command = [str(FRONTDESK), "chat", "--chat", "file"]
    with file.open("rb") as given:
        done = subprocess.run(
            command, stdin=given, env=environment(home, **AGENT), capture_output=True, timeout=60, check=True
        )
    assert done.stdout == b"echo: one\necho: two\n"


def test_without_a_gateway_it_is_said_how_to_start_one(tmp_path: Path) -> None:
    done = run(tmp_path, "chat", "-m", "hello", **AGENT)
    assert done.returncode == 1
    assert "frontdesk run" in done.stderr


def test_gateway_can_be_started_for_one_message(tmp_path: Path) -> None:
    done = run(tmp_path, "chat", "--start", "-m", "hello", **AGENT)
    assert (done.returncode, done.stdout) == (0, "echo: hello\n")


def test_commands_about_the_gateway_are_answered_while_it_runs(home: Path) -> None:
    assert "ready" in run(home, "status").stdout
    run(home, "chat", "--chat", "office", "-m", "a rare word: quokka", **AGENT)
    found = run(home, "sessions", "search", "quokka")
    assert (found.returncode, "«quokka»" in found.stdout) == (0, True)
    session = found.stdout.split()[0]
    assert "user: a rare word" in run(home, "sessions", "show", session).stdout
    assert "**user:** a rare word" in run(home, "sessions", "export", session, "--format", "markdown").stdout
    assert session in run(home, "sessions", "list", "--json").stdout
    assert "arrived" in run(home, "deliveries", "list").stdout
    assert run(home, "deliveries", "resend", "d_1").returncode == 1
    assert run(home, "people", "list").returncode == run(home, "people", "pending").returncode == 0
    assert run(home, "people", "approve", "ABCDEFGH").returncode == 1
    assert run(home, "people", "revoke", "telegram:1").returncode == 1


def test_status_says_that_nothing_runs(tmp_path: Path) -> None:
    done = run(tmp_path, "status")
    assert (done.returncode, "not running" in done.stdout) == (1, True)


def test_second_gateway_of_a_home_is_refused(home: Path) -> None:
    done = run(home, "run", "--port", "0", **AGENT)
    assert done.returncode == 1
    assert "in use by process" in done.stderr or "running already" in done.stderr


ALLOW = "Allow it? yes or no: "


@pytest.mark.parametrize(
    ("said", "decided", "answer"),
    [
        ("yes", "approved", "approved: remove"),
        ("no", "denied", "denied: remove (it was denied)"),
    ],
)
def test_action_that_the_agent_asks_for_is_decided_at_the_prompt(
    home: Path, said: str, decided: str, answer: str
) -> None:
    with seated(home, "chat", "--chat", f"deciding {said}", **AGENT) as seat:
        seat.read_until(PROMPT)
        seat.type(f"!approve remove Remove the file for {said}?\n")
        asked = seat.read_until(ALLOW)
        assert f"Remove the file for {said}?" in asked
        assert asked.splitlines()[-2:] == ['Action: "remove"', ALLOW]
        time.sleep(ARMED_AFTER_SECONDS)
        seat.type(f"{said}\n")
        seat.read_until("\n")
        shown = seat.read_until(PROMPT).splitlines()
        assert sorted(shown[:-1]) == sorted([answer, f"{asked_for(asked)} is {decided}."])
        leave(seat)


def test_message_during_a_decision_waits_and_is_answered_after_it(home: Path) -> None:
    with seated(home, "chat", "--chat", "meanwhile", **AGENT) as seat:
        seat.read_until(PROMPT)
        seat.type("!approve archive Archive the file?\n")
        seat.read_until(ALLOW)
        seat.type("wait a moment\n")
        assert "Your message is queued" in seat.read_until(ALLOW)
        seat.type("/approve\n")
        assert "Which one?" in seat.read_until(ALLOW)
        seat.type("no\n")
        shown = seat.read_until("echo: wait a moment")
        assert shown.index("denied: archive") > 0
        shown += seat.read_until(PROMPT)
        assert "away" not in shown
        assert "queued" not in shown
        leave(seat)


def test_action_that_was_decided_elsewhere_gives_the_prompt_back(home: Path) -> None:
    with seated(home, "chat", "--chat", "elsewhere", **AGENT) as seat:
        seat.read_until(PROMPT)
        seat.type("!approve rename Rename the file?\n")
        asked = seat.read_until(ALLOW)
        deny(home, asked, "another")
        assert seat.read_until(PROMPT).splitlines() == ["", "denied: rename (it was denied)", PROMPT]
        leave(seat)


@pytest.mark.parametrize("command", ["/approve c_1234", "/deny c_1234", "/approve", "/deny"])
def test_decision_that_is_refused_ends_in_an_exit_code(home: Path, command: str) -> None:
    done = run(home, "chat", "--chat", "refused", "-m", command, **AGENT)
    assert (done.returncode, done.stdout) == (1, "")
    assert "c_1234" in done.stderr or "Which one?" in done.stderr
    told = run(home, "chat", "--chat", "refused", "--json", "-m", command, **AGENT)
    assert told.returncode == 1
    assert json.loads(told.stdout.splitlines()[-1])["error"] == done.stderr.strip()


def test_line_that_was_written_before_the_question_decides_nothing(home: Path) -> None:
    """Neither what a program writes, nor what somebody typed while the agent was still at work."""
    with start(home, "chat", "--chat", "piped", terminal=False, **AGENT) as process:
        write(process, "!approve unlink Unlink it?\nyes\n")
        asked = read_until(process, "REASON")
    deny(home, asked, "another piped")
    with seated(home, "chat", "--chat", "typed ahead", **AGENT) as seat:
        seat.read_until(PROMPT)
        seat.type("!sleep 3; !approve shred Shred it?\nyes\n")
        asked = seat.read_until(ALLOW)
        deny(home, asked, "another typed")
        assert "denied: shred" in seat.read_until(PROMPT)
        leave(seat)


def test_ctrl_d_at_the_question_leaves_and_decides_nothing(home: Path) -> None:
    with seated(home, "chat", "--chat", "left alone", **AGENT) as seat:
        seat.read_until(PROMPT)
        seat.type("!approve truncate Truncate it?\n")
        confirmation = asked_for(seat.read_until(ALLOW))
        seat.type(CTRL_D)
        code, rest = seat.finish()
    assert (code, GOODBYE in rest) == (0, True)
    assert f"{confirmation} is not decided" in rest
    assert "frontdesk chat --chat 'left alone'" in rest
    listed = run(home, "confirm", "list").stdout
    assert confirmation in listed
    assert 'ago by "agent:main:local:dm:left alone", for local\n' in listed
    with seated(home, "chat", "--chat", "left alone", **AGENT) as seat:
        assert asked_for(seat.read_until(ALLOW)) == confirmation
        agree(seat)
        seat.read_until("approved: truncate")
        seat.read_until(PROMPT)
        seat.type("still here?\n")
        seat.read_until("echo: still here?")
        leave(seat)


def test_ctrl_d_at_the_question_leaves_the_gateway_of_the_same_process(tmp_path: Path) -> None:
    with seated(tmp_path, "run", "--port", "0", "--chat", **AGENT) as seat:
        seat.read_until("prompt leaves")
        seat.read_until(PROMPT)
        seat.type("!approve truncate Truncate it?\n")
        confirmation = asked_for(seat.read_until(ALLOW))
        seat.type(CTRL_D)
        code, rest = seat.finish()
    assert (code, "To come back: frontdesk run --chat" in rest) == (0, True)
    with seated(tmp_path, "run", "--port", "0", "--chat", **AGENT) as seat:
        seat.read_until("prompt leaves")
        assert asked_for(seat.read_until(ALLOW)) == confirmation
        seat.type(f"/approve {confirmation}\n")
        seat.read_until(f"{confirmation} is approved.")
        seat.read_until(PROMPT)
        leave(seat)


def test_command_that_was_typed_ahead_is_obeyed(home: Path) -> None:
    with seated(home, "chat", "--chat", "stopped ahead", **AGENT) as seat:
        seat.read_until(PROMPT)
        seat.type("!sleep 3; !approve shred Shred six?\r/stop\rhello\r")
        shown = seat.read_until("echo: hello")
        assert "Stopped" in shown
        assert ALLOW not in shown
        seat.read_until(PROMPT)
        leave(seat)


def test_text_that_was_typed_ahead_waits_and_an_answer_decides_nothing(home: Path) -> None:
    with seated(home, "chat", "--chat", "said ahead", **AGENT) as seat:
        seat.read_until(PROMPT)
        seat.type("!sleep 3; !approve shred Shred seven?\ryes\rhello\rand more\r")
        shown = seat.read_until(ALLOW)
        assert "Your message is queued" in shown
        assert "'and more' waits" in shown
        seat.type("no\n")
        shown = seat.read_until("echo: and more")
        assert shown.index("denied: shred") < shown.index("echo: yes") < shown.index("echo: hello")
        seat.read_until(PROMPT)
        leave(seat)


@pytest.mark.parametrize(("verb", "decided"), [("approve", "approved"), ("deny", "denied")])
def test_command_that_decides_ends_the_question(home: Path, verb: str, decided: str) -> None:
    with seated(home, "chat", "--chat", f"typed {verb}", **AGENT) as seat:
        seat.read_until(PROMPT)
        seat.type(f"!approve rotate Rotate it, or {verb}?\n")
        confirmation = asked_for(seat.read_until(ALLOW))
        seat.type(f"/{verb} {confirmation} because\n")
        shown = seat.read_until(f"{decided}: rotate") + seat.read_until(PROMPT)
        assert f"{confirmation} is {decided}." in shown
        assert ALLOW not in shown
        leave(seat)


def test_command_that_waits_does_not_keep_the_question_from_being_answered(home: Path) -> None:
    with seated(home, "chat", "--chat", "waiting command", **AGENT) as seat:
        seat.read_until(PROMPT)
        seat.type("!approve rotate Rotate it after all?\n")
        seat.read_until(ALLOW)
        seat.type("/title A fine title\n")
        assert "is queued and comes next" in seat.read_until(ALLOW)
        agree(seat)
        seat.read_until("approved: rotate")
        assert "A fine title" in seat.read_until(PROMPT)
        leave(seat)


SECRET = "aB3dE5gH7jK9"
SHOW = "Allow it? show or no: "
TYPE = 'To approve, type the value of "database": '
WIPE = f'{{"database": "customers_prod", "env": {{"API_KEY": "{SECRET}"}}}}'


def test_what_is_hidden_is_looked_at_and_a_target_typed_before_a_yes_counts(home: Path) -> None:
    with seated(home, "chat", "--chat", "careful", **AGENT) as seat:
        seat.read_until(PROMPT)
        seat.type(f"!approve wipe_database {WIPE} Make room\n")
        asked = seat.read_until(SHOW)
        assert "1 value is hidden: env.API_KEY (12 characters). Type show to see it." in asked
        assert asked.splitlines()[-3:] == ['Action: "wipe_database"', 'Its database: "customers_prod"', SHOW]
        seat.type("yes\n")
        assert "type show to see it before you say yes" in seat.read_until(SHOW)
        seat.type(f"/approve {asked_for(asked)} customers_prod\n")
        assert "you have not looked at all of it" in seat.read_until(SHOW)
        assert "revealed" not in run(home, "audit", "tail").stdout
        seat.type("show\n")
        shown = seat.read_until(ALLOW)
        assert f'API_KEY: "{SECRET}"' in shown
        assert shown.splitlines()[-3:-1] == asked.splitlines()[-3:-1]
        assert "revealed" in run(home, "audit", "tail").stdout
        for wrong, told in (("customers", "That is not the value of"), ("yes", "is not"), ("", "Nothing is")):
            agree(seat)
            seat.read_until(TYPE)
            seat.type(f"{wrong}\n")
            assert told in seat.read_until(ALLOW)
        time.sleep(ARMED_AFTER_SECONDS)
        seat.type("yes\ncustomers_prod\n")
        seat.read_until("was written before this question, and decides nothing.")
        seat.read_until(TYPE)
        seat.type("customers_prod\n")
        seat.read_until("approved: wipe_database")
        seat.read_until(PROMPT)
        leave(seat)
    found = json.loads(run(home, "confirm", "show", asked_for(asked), "--json").stdout)
    assert (found["status"], found["resolved_by"]) == ("approved", "local")


def test_yes_that_nobody_can_have_thought_about_decides_nothing(home: Path) -> None:
    """It was meant for something else: what the agent said before, or the question before this one."""
    with seated(home, "chat", "--chat", "fast", **AGENT) as seat:
        seat.read_until(PROMPT)
        told = ""
        for number in range(5):  # a machine that stands still for a second makes any answer slow
            seat.type(f"!approve hasten{number} Hurry?\n")
            seat.read_until(ALLOW)
            seat.type("yes\n")
            told = seat.read_until("\n") + seat.read_until("\n")
            if "too fast" not in told:
                seat.read_until(PROMPT)
                continue
            assert "hasten" not in told
            seat.type("no\n")
            seat.read_until("denied: hasten")
            break
        assert "That was too fast: nothing is decided." in told
        seat.read_until(PROMPT)
        leave(seat)


def test_reason_that_a_rule_wants_is_asked_for_at_the_prompt(home: Path) -> None:
    run(home, "confirm", "rules", "add", "ask", "--action", "explain", "--needs-reason")
    with seated(home, "chat", "--chat", "explained", **AGENT) as seat:
        seat.read_until(PROMPT)
        seat.type("!approve explain Explain it\n")
        seat.read_until(ALLOW)
        seat.type("no\n")
        seat.read_until("Why? ")
        seat.type("\n")
        assert "Nothing is decided." in seat.read_until(ALLOW)
        seat.type("no\n")
        seat.read_until("Why? ")
        seat.type("not today\n")
        seat.read_until("denied: explain (not today)")
        seat.read_until(PROMPT)
        leave(seat)


def test_question_shows_all_of_what_is_too_long_for_a_chat(home: Path) -> None:
    lines = json.dumps({"script": "\n".join(f"echo {number}" for number in range(600))})
    with seated(home, "chat", "--chat", "long", **AGENT) as seat:
        seat.read_until(PROMPT)
        for piece in (f"!approve run {lines[:2000]}", lines[2000:], "\n"):
            seat.type(piece)
        asked = seat.read_until(ALLOW)
        assert '"echo 599"' in asked
        closing = asked.splitlines()
        action = closing.index('Action: "run"')
        assert closing[action + 1].startswith('Its script: "echo 0\\n"')
        assert closing[-2].endswith('"echo 599"')
        assert closing[-1] == ALLOW
        refused = run(home, "chat", "--chat", "another", "-m", f"/approve {asked_for(asked)}", **AGENT)
        assert (refused.returncode, "not looked at all of it" in refused.stderr) == (1, True)
        seat.type("no\n")
        seat.read_until("denied: run")
        seat.read_until(PROMPT)
        leave(seat)


def test_taken_port_is_told_with_what_becomes_of_it(tmp_path: Path) -> None:
    with socket.socket() as taken, seated(tmp_path, "run", "--port", "0", "--chat", **AGENT) as seat:
        with contextlib.suppress(OSError):  # another program has it already
            taken.bind(("127.0.0.1", 6000))
            taken.listen()
        told = seat.read_until("/approvals.")
        assert "Port 6000 is taken" in told
        assert "tried again every 30 seconds" in told
        assert re.search(r"People decide at http://127.0.0.1:\d+/approvals\.", told)
        seat.read_until("prompt leaves")
        seat.read_until(PROMPT)
        leave(seat)


def asked_for(shown: str) -> str:
    """The id of what is asked."""
    found = re.search(r"(c_[0-9a-f]+) waits|/deny (c_[0-9a-f]+)", shown)
    assert found, shown
    return found[1] or found[2]


def agree(seat: Seat) -> None:
    """Say yes, when it is long enough that the question stands there."""
    time.sleep(ARMED_AFTER_SECONDS)
    seat.type("yes\n")


def deny(home: Path, asked: str, chat: str) -> None:
    done = run(home, "chat", "--chat", chat, "-m", f"/deny {asked_for(asked)}", **AGENT)
    assert "is denied." in done.stdout
