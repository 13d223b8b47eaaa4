"""The chat on a terminal that draws: what is typed, and what the screen shows."""

import json
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from frontdesk.cli.chat.questions import ARMED_AFTER_SECONDS
from tests.acceptance.program import run
from tests.acceptance.screens import (
    ALT_ENTER,
    DOWN,
    ENTER,
    LEFT,
    TAB,
    UP,
    Screen,
    watched,
)
from tests.acceptance.terminals import CTRL_C, CTRL_D
from tests.acceptance.test_chat import AGENT, GOODBYE, running

ALLOW = "Allow it? yes or no:"
PASTED_CHARACTERS = 6_000
RUN = ("run", "--port", "0", "--chat")


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The home of somebody whose gateway runs."""
    folder = tmp_path_factory.mktemp("home")
    with running(folder):
        yield folder


def chatting(home: Path, chat: str, **more: str) -> AbstractContextManager[Screen]:
    return watched(home, "chat", "--chat", chat, **(AGENT | more))


def said(home: Path, chat: str) -> list[str]:
    """What people said in a chat, as it is stored."""
    sessions = json.loads(run(home, "sessions", "list", "--json").stdout)
    found = next(each for each in sessions if each["key"].endswith(f":{chat}"))
    exported = run(home, "sessions", "export", found["id"]).stdout.splitlines()[1:]
    return [row["content"] for row in map(json.loads, exported) if row["role"] == "user"]


def leave(screen: Screen) -> None:
    screen.type(CTRL_D)
    code, rest = screen.seat.finish()
    assert (code, GOODBYE in rest) == (0, True)


def test_arrow_key_brings_back_what_was_written_also_the_next_time(home: Path) -> None:
    with chatting(home, "history") as screen:
        screen.wait_for_prompt()
        screen.type(f"first{ENTER}")
        screen.wait_for_line("echo: first")
        screen.wait_for_prompt()
        screen.type(UP)
        screen.wait_for_prompt("first")
        screen.type(DOWN)
        screen.wait_for_prompt()
        leave(screen)
    with chatting(home, "history") as screen:
        screen.wait_for_prompt()
        screen.type(UP)
        screen.wait_for_prompt("first")
        screen.type(f"{LEFT}{LEFT}{LEFT}{LEFT}{LEFT}the {ENTER}")
        screen.wait_for_line("echo: the first")
        screen.wait_for_prompt()
        leave(screen)
    assert said(home, "history") == ["first", "the first"]


def test_history_is_for_its_owner_alone(home: Path) -> None:
    with chatting(home, "kept") as screen:
        screen.wait_for_prompt()
        screen.type(f"a secret plan{ENTER}")
        screen.wait_for_line("echo: a secret plan")
        leave(screen)
    file = home / ".frontdesk" / "chat_history"
    assert "a secret plan" in file.read_text()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_long_paste_arrives_whole(home: Path) -> None:
    pasted = "".join(f"{number:05} " for number in range(PASTED_CHARACTERS // 6)) + "end"
    with chatting(home, "long paste") as screen:
        screen.wait_for_prompt()
        screen.paste(pasted)
        screen.wait(lambda seen: seen.last.endswith("end"))
        screen.type(ENTER)
        screen.wait(lambda seen: seen.lines[-1:] == [">"] and "".join(seen.lines[-2:-1]).endswith("end"))
        leave(screen)
    assert said(home, "long paste") == [pasted]


def test_pasted_lines_are_one_message(home: Path) -> None:
    with chatting(home, "lines") as screen:
        screen.wait_for_prompt()
        screen.paste("one\r\ntwo\nthree")
        screen.wait(lambda seen: seen.last.endswith("three"))
        screen.type(ENTER)
        screen.wait_for_line("echo: one")
        screen.wait_for_prompt()
        leave(screen)
    assert said(home, "lines") == ["one\ntwo\nthree"]


def test_alt_enter_begins_a_line_of_the_same_message(home: Path) -> None:
    with chatting(home, "two lines") as screen:
        screen.wait_for_prompt()
        screen.type(f"one{ALT_ENTER}two{ENTER}")
        screen.wait_for_line("echo: one")
        screen.wait_for_prompt()
        leave(screen)
    assert said(home, "two lines") == ["one\ntwo"]


def test_typing_does_not_mix_into_the_answer(home: Path) -> None:
    with chatting(home, "mixing") as screen:
        screen.wait_for_prompt()
        screen.type(f"!say begin; !sleep 1; !say ning and; !sleep 1; !say end.{ENTER}")
        screen.wait_for_line("begin")
        screen.type("my next words")
        screen.wait_for_line("beginning andend.")
        screen.wait_for_prompt("my next words")
        screen.type(f"!{ENTER}")
        screen.wait_for_line("echo: my next words!")
        leave(screen)


@pytest.mark.parametrize("arguments", [("chat", "--start"), RUN], ids=["asyncio", "uvloop"])
def test_one_ctrl_c_does_one_thing(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    """It clears the line, then stops the answer, then leaves."""
    with watched(tmp_path, *arguments, **AGENT) as screen:
        screen.wait_for_prompt()
        screen.type("half a li")
        screen.wait_for_prompt("half a li")
        screen.type(CTRL_C)
        screen.wait_for_prompt()
        screen.type(f"!say working on it; !hang{ENTER}")
        screen.wait_for_line("working on it")
        screen.type("half")
        screen.wait(lambda seen: seen.last == "> half")
        screen.type(CTRL_C)
        screen.wait(lambda seen: seen.last == ">")
        assert not any("Stopped" in line for line in screen.lines)
        screen.type(CTRL_C)
        screen.wait_for_line("Stopped.")
        screen.type(f"still here{ENTER}")
        screen.wait_for_line("echo: still here")
        screen.wait_for_prompt()
        screen.type(CTRL_C)
        code, rest = screen.seat.finish()
        assert (code, GOODBYE in rest) == (0, True)


def test_ctrl_d_on_a_line_does_not_leave(home: Path) -> None:
    with chatting(home, "half") as screen:
        screen.wait_for_prompt()
        screen.type(f"half{CTRL_D} done{ENTER}")
        screen.wait_for_line("echo: half done")
        screen.wait_for_prompt()
        leave(screen)


def test_message_while_an_answer_comes_is_queued_and_answered(home: Path) -> None:
    with chatting(home, "queued") as screen:
        screen.wait_for_prompt()
        screen.type(f"!sleep 1; !say slow{ENTER}")
        screen.type(f"quick{ENTER}")
        shown = screen.wait_for_line("echo: quick")
        assert shown.index("slow") < shown.index("echo: quick")
        screen.wait_for_prompt()
        leave(screen)


def test_command_while_an_answer_comes_is_obeyed_at_once(home: Path) -> None:
    with chatting(home, "at once") as screen:
        screen.wait_for_prompt()
        screen.type(f"!say working on it; !hang{ENTER}")
        screen.wait_for_line("working on it")
        screen.type(f"/stop{ENTER}")
        screen.wait_for_line("Stopped.")
        screen.wait_for_prompt()
        leave(screen)


def test_commands_are_completed(home: Path) -> None:
    with chatting(home, "completing") as screen:
        screen.wait_for_prompt()
        screen.type("/stat")
        screen.wait_for("Show")
        screen.type(f"{TAB}{ENTER}")
        screen.wait_for("Waiting:")
        leave(screen)


def test_titles_of_ones_own_conversations_are_completed(home: Path) -> None:
    with chatting(home, "titles") as screen:
        screen.wait_for_prompt()
        screen.type(f"hello{ENTER}")
        screen.wait_for_line("echo: hello")
        screen.type(f"/title Garden plans{ENTER}")
        screen.wait_for("is called")
        screen.wait_for_prompt()
        screen.type("/resume Gar")
        screen.wait(lambda seen: any(line.strip() == "Garden plans" for line in seen.lines))
        screen.type(TAB)
        screen.wait(lambda seen: any(line.startswith("> /resume Garden plans") for line in seen.lines))
        screen.type(CTRL_C)
        leave(screen)


def test_markdown_is_drawn_on_a_terminal_and_plain_in_a_pipe(home: Path) -> None:
    text = "# Plan\n\nUse **bold** and `code`.\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n- one"
    with chatting(home, "drawn") as screen:
        screen.wait_for_prompt()
        screen.paste(f"!say {text}")
        screen.type(ENTER)
        shown = screen.wait(lambda seen: any("• one" in line for line in seen.lines))
        screen.wait_for_prompt()
        drawn = shown[shown.index("Plan") :]
        assert "Use bold and code." in drawn
        assert any("───" in line for line in drawn)
        assert b"\x1b[1" in screen.written
        leave(screen)
    assert run(home, "chat", "--chat", "plain", "-m", f"!say {text}", **AGENT).stdout == f"{text}\n"


def test_without_colours_nothing_is_coloured(home: Path) -> None:
    with chatting(home, "grey", NO_COLOR="1") as screen:
        screen.wait_for_prompt()
        screen.paste("!say # Plan\n\n`code` **bold**")
        screen.type(ENTER)
        screen.wait_for_line("code bold")
        screen.wait_for_prompt()
        assert b"\x1b[3" not in screen.written.replace(b"\x1b[3A", b"")
        leave(screen)


@pytest.mark.parametrize(
    "attack", ["\x1b]0;title\x07", "\x1b[2J", "\x9b2J", "\x90q\x9c", "&#27;[2J", "&#x9b;2J", "[b]x[/b]"]
)
def test_answer_does_not_command_the_terminal(home: Path, attack: str) -> None:
    message = home / "attack.txt"
    message.write_text(f"!say before {attack} after")
    asked = message.read_bytes()
    run(home, "chat", "--chat", "attack", "-m", "-", given=asked, **AGENT)
    with chatting(home, "attack") as screen:
        screen.wait_for_prompt()
        screen.type(f"/retry{ENTER}")
        shown = screen.wait_for("after")
        assert any("before" in line for line in shown)
        for forbidden in (b"\x1b]", b"\x1b[2J", b"\xc2\x9b", b"\xc2\x90", b"\x07"):
            assert forbidden not in screen.written
        leave(screen)


def test_question_is_answered_at_the_prompt_and_what_was_begun_comes_back(home: Path) -> None:
    with chatting(home, "asked") as screen:
        screen.wait_for_prompt()
        screen.type(f"!sleep 3; !approve shred Shred it?{ENTER}")
        screen.type("ye")
        screen.wait(lambda seen: seen.last == ALLOW)
        screen.type(f"s{ENTER}")
        screen.wait(lambda seen: any("queued" in line or "waits" in line for line in seen.lines))
        assert not any("approved: shred" in line for line in screen.lines)
        screen.wait(lambda seen: seen.last == ALLOW)
        time.sleep(ARMED_AFTER_SECONDS)
        screen.type(f"yes{ENTER}")
        screen.wait_for("approved: shred")
        screen.wait_for_line("echo: s")
        screen.wait_for_prompt("ye")
        screen.type(CTRL_C)
        screen.wait_for_prompt()
        leave(screen)


def above_the_question(screen: Screen) -> str:
    """The lines from the action on, those that go on put together."""
    lines = screen.lines[:-1]
    begin = max(number for number, line in enumerate(lines) if line.startswith("Action:"))
    return "".join(line.strip().removeprefix("…") for line in lines[begin:])


def test_action_and_target_stand_above_the_question_on_a_narrow_terminal(home: Path) -> None:
    long = "a_database_with_a_name_that_is_wider_than_this"
    details = json.dumps({"database": long, "env": {"API_KEY": "aB3dE5gH7jK9"}, "note": "x" * 200})
    with chatting(home, "narrow") as screen:
        screen.resize(40, 12)
        screen.wait_for_prompt()
        screen.paste(f"!approve wipe_database {details} Please")
        screen.type(ENTER)
        screen.wait(lambda seen: seen.last == "Allow it? show or no:")
        assert above_the_question(screen) == f'Action: "wipe_database"Its database: "{long}"'
        screen.type(f"show{ENTER}")
        screen.wait(lambda seen: seen.last == ALLOW)
        assert above_the_question(screen) == f'Action: "wipe_database"Its database: "{long}"'
        time.sleep(ARMED_AFTER_SECONDS)
        screen.type(f"yes{ENTER}")
        screen.wait_for("To approve, type the value of")
        screen.type(CTRL_C)
        screen.wait_for("Stopped.")
        screen.wait_for_prompt()
        leave(screen)


def test_yes_of_before_the_question_decides_nothing(home: Path) -> None:
    with chatting(home, "early") as screen:
        screen.wait_for_prompt()
        screen.type(f"!sleep 3; !approve shred Shred it early?{ENTER}yes{ENTER}")
        screen.wait(lambda seen: seen.last == ALLOW)
        screen.type(f"no{ENTER}")
        screen.wait_for("denied: shred")
        screen.wait_for_line("echo: yes")
        screen.wait_for_prompt()
        leave(screen)


def test_ctrl_c_at_the_question_stops_the_agent(home: Path) -> None:
    with chatting(home, "stopped at") as screen:
        screen.wait_for_prompt()
        screen.type(f"!approve shred Shred it now?{ENTER}")
        screen.wait(lambda seen: seen.last == ALLOW)
        screen.type(CTRL_C)
        screen.wait_for_line("Stopped.")
        screen.wait_for_prompt()
        leave(screen)


def test_other_windows_characters_and_lengths_break_nothing(home: Path) -> None:
    with chatting(home, "robust") as screen:
        screen.wait_for_prompt()
        screen.resize(20, 6)
        screen.type("漢字かな交じり文 👩‍👩‍👧 é")
        screen.wait(lambda seen: any("漢字" in line for line in seen.lines))
        screen.resize(100, 30)
        screen.type(ENTER)
        screen.wait_for("echo: 漢字")
        screen.paste("!say " + "word " * 4_000 + "end")
        screen.type(ENTER)
        screen.wait(lambda seen: seen.lines[-1:] == [">"] and "".join(seen.lines[-2:-1]).endswith("end"))
        screen.resize(3, 2)
        screen.type(f"tiny{ENTER}")
        screen.resize(80, 30)
        screen.type(f"large{ENTER}")
        screen.wait_for("echo: large")
        leave(screen)


@pytest.mark.parametrize("term", ["dumb", "vt100", "xterm-256color"])
@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_terminal_that_speaks_no_utf_8_breaks_nothing(home: Path, term: str, encoding: str) -> None:
    given = {"LC_ALL": "POSIX", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "PYTHONIOENCODING": encoding}
    with chatting(home, f"{term} {encoding}", TERM=term, **given) as screen:
        screen.wait_for_prompt()
        screen.type(f"gr\xfc\xdfe 漢{ENTER}")
        screen.wait_for("echo: gr")
        screen.wait_for_prompt()
        leave(screen)


def test_log_of_the_gateway_is_not_written_into_the_chat(tmp_path: Path) -> None:
    with watched(tmp_path, "chat", "--start", **AGENT) as screen:
        screen.wait_for_prompt()
        screen.type(f"!fail{ENTER}")
        screen.wait_for("not answered")
        screen.wait_for_prompt()
        leave(screen)
        assert b"level=" not in screen.written
    assert "level=" in (tmp_path / ".frontdesk" / "frontdesk.log").read_text()


@pytest.mark.parametrize("arguments", [["--help"], ["chat", "--help"]])
def test_libraries_of_the_terminal_are_loaded_only_where_there_is_one(arguments: list[str]) -> None:
    program = (
        f"import sys; from frontdesk.cli import main; main({arguments}, standalone_mode=False);"
        "sys.exit(bool({'rich', 'prompt_toolkit'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
