"""The tour, as somebody takes it."""

import re
import signal
from pathlib import Path

import pytest

from tests.acceptance.program import PATIENCE_SECONDS, finish, interrupt, read_until, run, start, write

ID = r"[0-9]{8}_[0-9]{6}_[0-9a-f]{8}"
# Nothing changes by itself while a test runs, whatever the hour.
CALM = {"FRONTDESK_SESSION_RESET_MODE": "idle"}
PROMPT = "alice@telegram> "


def answers(home: Path, *lines: str, arguments: tuple[str, ...] = ("--ephemeral",)) -> list[str]:
    """What the tour answers to each line."""
    done = run(home, "tour", *arguments, given="\n".join(lines), **CALM)
    assert (done.returncode, done.stderr) == (0, "")
    welcome, *said = done.stdout.removesuffix("\n\n").split("\n\n")[1:]
    assert welcome.startswith("A line is a message")
    assert len(said) == len(lines)
    return said


def session_of(answer: str) -> str:
    (found,) = re.findall(rf"session ({ID})", answer)
    return str(found)


def test_message_is_answered_with_its_words_key_session_and_count(tmp_path: Path) -> None:
    first, second = answers(tmp_path, "hello", "日本語 👋")
    reply, standing = first.splitlines()
    assert reply == "You said: hello"
    assert re.fullmatch(rf"\[agent:main:telegram:dm:alice\] session {ID}, 2 of 200 messages", standing)
    assert second.startswith("You said: 日本語 👋\n")
    assert "4 of 200 messages" in second
    assert session_of(first) == session_of(second)


def test_first_screen_says_that_there_is_no_agent_and_what_can_be_typed(tmp_path: Path) -> None:
    done = run(tmp_path, "tour", "--ephemeral")
    assert done.returncode == 0
    assert "There is no agent yet" in done.stdout
    for command in (":as", ":whoami", ":sessions", ":search", ":new", ":undo", ":redo", ":resume", ":quit"):
        assert f"\n  {command}" in done.stdout


def test_nothing_is_asked_for_when_nobody_types(tmp_path: Path) -> None:
    assert ">" not in run(tmp_path, "tour", "--ephemeral", given="hello\n").stdout


def test_quit_ends_the_tour(tmp_path: Path) -> None:
    done = run(tmp_path, "tour", "--ephemeral", given="one\n:quit\ntwo\n")
    assert done.returncode == 0
    assert "You said: one" in done.stdout
    assert "two" not in done.stdout


def test_people_and_places_have_conversations_of_their_own(tmp_path: Path) -> None:
    lines = ["hi", ":as bob", "hi", ":as bob slack", "hi", ":as bob slack group:general", "hi"]
    said = answers(tmp_path, *lines)[::2]
    keys = [re.findall(r"\[(.*?)\]", answer)[0] for answer in said]
    assert keys == [
        "agent:main:telegram:dm:alice",
        "agent:main:telegram:dm:bob",
        "agent:main:slack:dm:bob",
        "agent:main:slack:group:general:bob",
    ]
    assert len(set(map(session_of, said))) == 4


def test_thread_is_shared_and_messages_name_their_sender(tmp_path: Path) -> None:
    bob, first, _, second, history = answers(
        tmp_path,
        ":as bob slack channel:general thread:7",
        "from bob",
        ":as carol slack channel:general thread:7",
        "from carol",
        ":history",
    )
    assert "rule     everybody in the thread shares a session" in bob
    assert session_of(first) == session_of(second)
    assert "user: [bob] from bob" in history
    assert "user: [carol] from carol" in history


def test_whoami_shows_where_messages_go_and_why(tmp_path: Path) -> None:
    (shown,) = answers(tmp_path, ":whoami")
    assert shown.splitlines() == [
        "You are alice on telegram (DM with alice).",
        "key      agent:main:telegram:dm:alice",
        "rule     direct messages: the chat",
        "shared   no",
        "policy   after 1440 idle minutes, at 200 messages",
        "session  none yet",
        "next     a message starts a session",
    ]


def test_waiting_long_enough_starts_a_new_session(tmp_path: Path) -> None:
    first, short, second, long, third = answers(tmp_path, "one", ":wait 23h", "two", ":wait 25h", "three")
    assert short.endswith("a message goes on in this session")
    assert long.endswith("a message starts a new session (idle)")
    assert session_of(first) == session_of(second) != session_of(third)
    assert third.startswith("A new session began (idle)")


def test_reaching_the_limit_is_announced_and_starts_a_new_session(tmp_path: Path) -> None:
    limit, first, second, third = answers(tmp_path, ":limit 4", "one", "two", "three")
    assert "0" in limit
    assert "2 of 4 messages" in first
    assert "4 of 4 messages: limit reached, the next message starts a new session" in second
    assert third.startswith("A new session began (message_limit)")
    assert session_of(third) != session_of(second)


def test_session_can_be_left_and_resumed_by_number_id_and_title(tmp_path: Path) -> None:
    home = ("--store", f"sqlite:///{tmp_path}/tour.db")
    first, _, _, second, listed, by_number, by_title, history = answers(
        tmp_path, "one", ":title Trip", ":new", "two", ":sessions", ":resume 2", ":resume trip", ":history",
        arguments=home,
    )  # fmt: skip
    old, new = session_of(first), session_of(second)
    assert old != new
    assert re.search(rf"1\. {new} .*open, you are here", listed)
    assert re.search(rf"2\. {old} “Trip” .*ended: new", listed)
    assert by_number.startswith(f"Back in {old}")
    assert by_title.startswith("You are already there.")
    assert "user: one" in history
    assert "two" not in history
    (by_id,) = answers(tmp_path, f":resume {new}", arguments=home)
    assert by_id.startswith(f"Back in {new}")


def test_nobody_reaches_the_conversation_of_somebody_else(tmp_path: Path) -> None:
    home = ("--store", f"sqlite:///{tmp_path}/tour.db")
    said, *_ = answers(tmp_path, "the secret plan", ":title Plan", arguments=home)
    _, _, found, listed, by_id, by_title, history = answers(
        tmp_path,
        ":as bob",
        "hello",
        ":search secret",
        ":sessions",
        f":resume {session_of(said)}",
        ":resume Plan",
        ":history",
        arguments=home,
    )
    assert found == "Nothing found among what you may see."
    assert session_of(said) not in listed
    for refused in (by_id, by_title):
        assert refused.startswith("error: ")
        assert "no such conversation" in refused
    assert "secret" not in history


def test_private_conversation_is_not_resumed_in_a_shared_chat(tmp_path: Path) -> None:
    *_, refused, history = answers(
        tmp_path,
        "private words",
        ":title Mine",
        ":as alice telegram group:team thread:1",
        "hello team",
        ":resume Mine",
        ":history",
    )
    assert refused.startswith("error: ")
    assert "private" not in history


def test_search_finds_words_phrases_and_beginnings(tmp_path: Path) -> None:
    one, *found = answers(
        tmp_path, "the quick brown fox", ":search FOX", ':search "quick brown"', ":search bro*", ":search dog"
    )
    for hits in found[:3]:
        assert session_of(one) in hits
        assert "user:" in hits
    assert found[3] == "Nothing found among what you may see."


def test_undo_takes_turns_back_and_redo_brings_them_again(tmp_path: Path) -> None:
    *_, undone, after, redone, again, nothing = answers(
        tmp_path, "one", "two", ":undo", ":history", ":redo", ":history", ":redo"
    )
    assert undone.startswith("Undone: 1 turn, back to before: two\n")
    assert "2 of 200 messages" in undone
    assert "two" not in after
    assert redone.startswith("Brought back: 2 messages\n")
    assert "user: two" in again
    assert nothing == "There is nothing to redo."


def test_context_is_what_an_agent_would_be_told(tmp_path: Path) -> None:
    done = run(tmp_path, "tour", "--ephemeral", given=":as bob matrix group:ops\n:context\n")
    assert "## Current Session Context" in done.stdout
    assert '"ops"' in done.stdout


REFUSED = {
    ":sesions": "did you mean :sessions?",
    ":frobnicate": ":help lists what there is",
    ":as": "say who",
    ":as bob slakc": "Unknown platform 'slakc'",
    ":as bob slack room:1": "a place is dm",
    ":as bob slack group:": "a place is dm",
    ":as bob group:a channel:b": "one chat at a time",
    ":wait": "use a number with s, m, h or d",
    ":wait soon": "use a number with s, m, h or d",
    ":wait 9999999d": "days at most",
    ":limit many": "use a whole number",
    ":limit 999999999999": "use a whole number",
    ":undo x": "use a whole number",
    ":resume nobody": "no such conversation",
    ":resume 99": "no such conversation",
    ":search": "no word",
}


def test_what_cannot_be_done_is_said_in_one_line_and_changes_nothing(tmp_path: Path) -> None:
    _, before, *refused, after = answers(tmp_path, "one", ":whoami", *REFUSED, ":whoami")
    for answer, message in zip(refused, REFUSED.values(), strict=True):
        assert answer.startswith("error: ")
        assert message in answer
        assert "\n" not in answer
    assert before == after


def test_without_a_conversation_there_is_nothing_to_change(tmp_path: Path) -> None:
    lines = (":new", ":history", ":undo", ":redo", ":title x", ":resume x")
    *refused, whoami = answers(tmp_path, *lines, ":whoami")
    assert all(answer.startswith("error: ") and "say something first" in answer for answer in refused)
    assert "session  none yet" in whoami


def test_line_that_only_looks_like_a_command_is_a_message(tmp_path: Path) -> None:
    assert answers(tmp_path, ":)")[0].startswith("You said: :)")


def test_conversations_are_kept_in_a_file_of_the_tour(tmp_path: Path) -> None:
    (first,) = answers(tmp_path, "one", arguments=())
    (second,) = answers(tmp_path, "two", arguments=())
    assert session_of(first) == session_of(second)
    assert (tmp_path / ".frontdesk" / "tour.db").exists()
    assert not (tmp_path / ".frontdesk" / "state.db").exists()


def test_clock_goes_on_from_where_the_last_tour_left_it(tmp_path: Path) -> None:
    answers(tmp_path, "one", ":wait 100d", "two", arguments=())
    waited, third = answers(tmp_path, ":wait 25h", "three", arguments=())
    assert waited.endswith("a message starts a new session (idle)")
    assert third.startswith("A new session began (idle)")


def test_ephemeral_tour_leaves_nothing_behind(tmp_path: Path) -> None:
    done = run(tmp_path, "tour", "--ephemeral", given="hello\n", TMPDIR=str(tmp_path))
    assert "You said: hello" in done.stdout
    assert list(tmp_path.iterdir()) == []


def test_store_and_ephemeral_exclude_each_other(tmp_path: Path) -> None:
    done = run(tmp_path, "tour", "--ephemeral", "--store", "sqlite:///x.db")
    assert done.returncode == 2


def test_second_tour_on_the_same_file_is_told_who_has_it(tmp_path: Path) -> None:
    with start(tmp_path, "tour") as first:
        read_until(first, ":quit")
        second = run(tmp_path, "tour")
        assert second.returncode == 1
        assert "is in use by process" in second.stderr
        assert second.stderr.count("\n") == 1
        assert finish(first)[0] == 0


def test_bytes_that_are_no_text_and_controls_are_shown_as_such(tmp_path: Path) -> None:
    done = run(tmp_path, "tour", "--ephemeral", given=b"a\xffb\x1b[2Jc\n")
    assert done.returncode == 0
    assert "You said: a\ufffdb\ufffd[2Jc\n" in done.stdout


def test_wrong_setting_is_an_error_in_one_line(tmp_path: Path) -> None:
    done = run(tmp_path, "tour", FRONTDESK_SESSION_RESET_AT_HOUR="99")
    assert done.returncode == 1
    assert "session_reset.at_hour" in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(("typed", "interrupted"), [("", True), ("\x04", False), (":quit\n", False)])
def test_person_at_a_terminal_leaves_cleanly(typed: str, interrupted: bool, tmp_path: Path) -> None:
    with start(tmp_path, "tour", terminal=True) as tour:
        read_until(tour, PROMPT)
        write(tour, "hello\n")
        assert "You said: hello" in read_until(tour, PROMPT)
        write(tour, typed)
        if interrupted:
            interrupt(tour)
        code, rest = finish(tour)
    assert code == 0
    assert "Traceback" not in rest
    assert "Aborted" not in rest
    assert answers(tmp_path, ":sessions", arguments=())[0].count("2 messages") == 1


def test_interrupt_leaves_cleanly_without_a_terminal(tmp_path: Path) -> None:
    with start(tmp_path, "tour", "--ephemeral", TMPDIR=str(tmp_path)) as tour:
        write(tour, "hello\n")
        read_until(tour, "messages\n\n")
        tour.send_signal(signal.SIGINT)
        code, rest = finish(tour)
    assert (code, rest) == (0, "")
    assert list(tmp_path.iterdir()) == []


def test_reader_that_goes_away_causes_no_noise(tmp_path: Path) -> None:
    with start(tmp_path, "tour", "--ephemeral") as tour:
        read_until(tour, ":quit")
        assert tour.stdout is not None
        tour.stdout.close()
        write(tour, "hello\n")
        assert tour.stdin is not None
        tour.stdin.close()
        assert tour.wait(PATIENCE_SECONDS) in (0, 1)
