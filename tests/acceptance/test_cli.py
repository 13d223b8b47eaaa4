"""The command line: help, settings, explanations."""

import asyncio
import json
import os
import subprocess
import sys
import tomllib
from importlib.metadata import version
from pathlib import Path

import pytest

from frontdesk import Platform, SessionSource, SessionStore, config
from frontdesk.config import reference
from tests.acceptance.program import FRONTDESK, PATIENCE_SECONDS, environment, run, run_afresh

SHOWN = """
from frontdesk.cli import main
import sys
main(sys.argv[1:], standalone_mode=False)
loaded = (name for name, module in sys.modules.items() if module and name.split(".")[0] in {packages})
print(*sorted(loaded), file=sys.stderr)
"""
HEAVY = ("asyncpg", "httpx", "jinja2", "msgspec", "starlette", "uvicorn", "uvloop")


def test_help_lists_the_commands(tmp_path: Path) -> None:
    done = run_afresh(tmp_path, "--help")
    assert done.returncode == 0
    for command in ("run", "chat", "sessions", "explain", "config"):
        assert f"\n  {command} " in done.stdout


@pytest.mark.parametrize(
    ("command", "loaded"),
    [(["--help"], []), (["run", "--help"], ["frontdesk.cli.run"])],
    ids=" ".join,
)
def test_help_loads_nothing_that_runs(command: list[str], loaded: list[str], tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", SHOWN.format(packages={"frontdesk", *HEAVY}), *command],
        capture_output=True,
        text=True,
        check=True,
        env=environment(tmp_path),
        timeout=PATIENCE_SECONDS,
    )
    assert done.stderr.split() == sorted(["frontdesk", "frontdesk.cli", "frontdesk.errors", *loaded])


@pytest.mark.parametrize(
    "command",
    [["run"], ["chat"], ["sessions"], ["explain"], ["config"], ["config", "show"], ["config", "check"]],
)
def test_every_command_has_help(command: list[str], tmp_path: Path) -> None:
    done = run_afresh(tmp_path, *command, "--help")
    assert done.returncode == 0
    assert f"Usage: frontdesk {' '.join(command)}" in done.stdout


def test_version(tmp_path: Path) -> None:
    assert run_afresh(tmp_path, "--version").stdout == f"frontdesk {version('frontdesk')}\n"


def test_unknown_command_is_a_usage_error(tmp_path: Path) -> None:
    done = run_afresh(tmp_path, "toru")
    assert done.returncode == 2
    assert "No such command 'toru'" in done.stderr


def run_into(full: str, home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    with Path(full).open("wb") as output:
        return subprocess.run(
            [FRONTDESK, *arguments],
            stdout=output,
            stderr=subprocess.PIPE,
            text=True,
            env=environment(home),
            check=False,
            timeout=PATIENCE_SECONDS,
        )


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
@pytest.mark.parametrize("arguments", [["config", "show"], ["--help"], ["config", "reference"]])
def test_output_that_cannot_be_written_is_an_error_in_one_line(arguments: list[str], tmp_path: Path) -> None:
    done = run_into("/dev/full", tmp_path, *arguments)
    assert (done.returncode, done.stderr) == (1, "Error: No space left on device\n")


def test_reader_that_goes_away_ends_the_command_quietly(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    done = run_into(f"/proc/self/fd/{writing}", tmp_path, "config", "reference")
    os.close(writing)
    assert (done.returncode, done.stderr) == (1, "")


@pytest.mark.parametrize(
    "arguments", [["confirm", "show"], ["confirm", "deny"], ["confirm", "rules", "revoke"]]
)
def test_argument_that_is_no_text_is_a_usage_error(arguments: list[str], tmp_path: Path) -> None:
    done = run(tmp_path, *arguments, os.fsdecode(b"a\xffb"))
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1] == "Error: An argument is not UTF-8."
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    "arguments", [["sessions", "list", "--active"], ["background", "begin", "a-session", "--minutes"]]
)
def test_amount_that_is_no_number_is_a_usage_error(arguments: list[str], tmp_path: Path) -> None:
    done = run(tmp_path, *arguments, "nan")
    assert done.returncode == 2
    assert "'nan' is not a number." in done.stderr


def test_search_without_hits_says_so(tmp_path: Path) -> None:
    done = run_afresh(tmp_path, "sessions", "search", "nothing")
    assert (done.returncode, done.stdout, done.stderr) == (1, "", "Nothing found.\n")
    asked = run_afresh(tmp_path, "sessions", "search", "nothing", "--json")
    assert (asked.returncode, json.loads(asked.stdout)) == (1, [])


class TestConfigShow:
    def test_output_says_where_each_value_came_from_and_is_a_valid_file(self, tmp_path: Path) -> None:
        file = tmp_path / "desk.toml"
        file.write_text('home = "/srv/desk"\n[session_reset.by_chat."slack:C1"]\nat_hour = 5\n')
        done = run_afresh(
            tmp_path, "--config", str(file), "config", "show", FRONTDESK_SESSION_RESET_MODE="none"
        )
        assert done.returncode == 0
        lines = done.stdout.splitlines()
        assert any(
            line.startswith('home = "/srv/desk"') and line.endswith(f"# file ({file})") for line in lines
        )
        (mode,) = (line for line in lines if line.startswith("session_reset.mode"))
        assert mode.endswith("# environment (FRONTDESK_SESSION_RESET_MODE)")
        shown = tomllib.loads(done.stdout)
        assert shown["session_reset"]["by_chat"]["slack:C1"]["at_hour"] == 5
        file.write_text(done.stdout)
        assert config.load(file, {}).gateway.default_reset_policy.mode == "none"

    def test_defaults_of_the_agent_and_the_channels_are_shown(self, tmp_path: Path) -> None:
        file = tmp_path / "desk.toml"
        file.write_text(
            '[agent]\ndriver = "openai"\nmodel = "m"\nretries = 7\n[channels.webhook.shop]\n'
            'secret_env = "S"\ncallback_url = "http://127.0.0.1:9/"\n'
            '[channels.api_server.tokens_env]\nann = "A"\n'
        )
        done = run(tmp_path, "--config", str(file), "config", "show")
        shown = tomllib.loads(done.stdout)
        assert (shown["agent"]["retries"], shown["agent"]["max_rounds"]) == (7, 20)
        assert "# agent.api_key_env =" in done.stdout
        assert shown["channels"]["webhook"]["shop"]["secret_env"] == "S"
        assert shown["channels"]["webhook"]["shop"]["timeout_seconds"] == 20.0
        assert shown["channels"]["api_server"]["wait_seconds"] == 600.0
        file.write_text(done.stdout)
        assert run(tmp_path, "--config", str(file), "config", "check").returncode == 0

    def test_unknown_driver_is_no_reason_to_show_nothing(self, tmp_path: Path) -> None:
        done = run(tmp_path, "config", "show", FRONTDESK_AGENT_DRIVER="nope")
        assert done.returncode == 0
        assert 'agent.driver = "nope"' in done.stdout
        assert "no agent called 'nope'" in done.stderr

    def test_json_has_every_value(self, tmp_path: Path) -> None:
        done = run(tmp_path, "config", "show", "--json", FRONTDESK_STORE_URL="postgresql://me:secret@db/desk")
        shown = json.loads(done.stdout)
        values = {value["name"]: value for value in shown["values"]}
        assert shown["file"] == str(tmp_path / ".frontdesk" / "frontdesk.toml")
        assert values["store.url"] == {
            "name": "store.url",
            "value": "postgresql://me:…@db/desk",
            "origin": "environment",
            "where": "FRONTDESK_STORE_URL",
        }
        assert values["session_reset.at_hour"]["origin"] == "default"
        assert values["session_reset.timezone"]["value"] is None

    def test_file_that_does_not_exist_is_an_error_in_one_line(self, tmp_path: Path) -> None:
        done = run(tmp_path, "--config", "nowhere.toml", "config", "show")
        assert (done.returncode, done.stdout) == (1, "")
        assert done.stderr == (
            "Error: The configuration file nowhere.toml cannot be read: there is no such file\n"
        )


class TestConfigCheck:
    def test_good_file_has_no_errors(self, tmp_path: Path) -> None:
        (tmp_path / "good.toml").write_text("[session_reset]\nat_hour = 5\n")
        done = run_afresh(tmp_path, "config", "check", "good.toml")
        assert (done.returncode, done.stdout, done.stderr) == (0, "good.toml: no errors\n", "")

    def test_bad_value_is_named_with_its_file(self, tmp_path: Path) -> None:
        (tmp_path / "bad.toml").write_text("[session_reset]\nat_hour = 24\n")
        done = run(tmp_path, "config", "check", "bad.toml")
        assert done.returncode == 1
        assert done.stderr == (
            "Error: Setting session_reset.at_hour is 24; allowed: a whole number from 0 to 23 (in bad.toml)\n"
        )

    def test_setting_that_is_missing_is_named(self, tmp_path: Path) -> None:
        (tmp_path / "bad.toml").write_text('[agent]\ndriver = "command"\n')
        done = run(tmp_path, "config", "check", "bad.toml")
        assert done.returncode == 1
        assert done.stderr == "Error: Setting agent.command is missing: it must be set.\n"

    def test_syntax_error_is_named_with_its_line(self, tmp_path: Path) -> None:
        (tmp_path / "bad.toml").write_text("\n[session_reset\n")
        done = run(tmp_path, "config", "check", "bad.toml")
        assert done.returncode == 1
        assert done.stderr.startswith("Error: bad.toml, line 2, is not valid TOML:")

    def test_unknown_store_is_an_error(self, tmp_path: Path) -> None:
        done = run(tmp_path, "config", "check", FRONTDESK_STORE_URL="mysql://me:secret@db/desk")
        assert done.returncode == 1
        assert done.stderr.startswith("Error: No store for 'mysql://")
        assert "secret" not in done.stderr

    def test_variable_that_sets_nothing_is_a_warning(self, tmp_path: Path) -> None:
        done = run(tmp_path, "config", "check", FRONTDESK_SESION_RESET_MODE="idle")
        assert done.returncode == 0
        assert done.stderr == (
            "Warning: the variable FRONTDESK_SESION_RESET_MODE sets nothing."
            " Did you mean FRONTDESK_SESSION_RESET_MODE?\n"
        )


def test_reference_is_printed(tmp_path: Path) -> None:
    assert run_afresh(tmp_path, "config", "reference").stdout == reference.render()


async def talk(url: str) -> None:
    """A conversation of two messages."""
    source = SessionSource(platform=Platform.TELEGRAM, chat_id="alice", user_id="alice")
    async with await SessionStore.open(url) as store:
        entry = await store.get_or_create_session(source)
        for role in ("user", "assistant"):
            await store.append_to_transcript(entry.session_id, {"role": role, "content": "hello"})


class TestExplain:
    def test_options_describe_the_source(self, tmp_path: Path) -> None:
        options = ["--platform", "slack", "--chat-type", "group", "--chat-id", "C1", "--thread-id", "7"]
        done = run_afresh(tmp_path, "explain", *options)
        assert done.returncode == 0
        assert done.stdout.splitlines() == [
            "source   group: C1, thread: 7",
            "key      agent:main:slack:group:C1:7",
            "rule     everybody in the thread shares a session",
            "profile  default (no other)",
            "sender   slack: not let in, by the rule nameless; no such channel is connected",
            "shared   yes",
            "policy   daily at 4:00 (local time), after 1440 idle minutes, at 200 messages",
            "session  none yet",
            "next     a message is refused: its sender is not let in (nameless)",
        ]

    def test_sender_is_let_in_by_the_channel_that_would_be_there(self, tmp_path: Path) -> None:
        (tmp_path / "desk.toml").write_text(
            '[channels.webhook.shop]\nsecret_env = "S"\ncallback_url = "http://127.0.0.1:9/"\n'
        )
        options = ["--platform", "webhook", "--account", "shop", "--chat-id", "1"]
        done = run(tmp_path, "--config", "desk.toml", "explain", *options)
        assert "sender   webhook@shop: let in as user, by the rule channel_credential\n" in done.stdout
        assert "next     a message starts a session\n" in done.stdout

    def test_source_can_be_json(self, tmp_path: Path) -> None:
        given = '{"platform": "telegram", "chat_id": 42, "user_name": "ann"}'
        done = run(tmp_path, "explain", "--json", given=given)
        explained = json.loads(done.stdout)
        assert explained["session_key"] == "agent:main:telegram:dm:42"
        assert explained["rule"] == "direct messages: the chat"
        assert explained["source"]["user_name"] == "ann"
        assert explained["policy"]["max_messages"] == 200
        assert (explained["session"], explained["reset_reason"]) == (None, None)
        assert explained["refused"] is None

    def test_policy_is_the_configured_one(self, tmp_path: Path) -> None:
        (tmp_path / "desk.toml").write_text(
            '[session_reset.by_chat."slack:C1"]\nmode = "none"\nmax_messages = 0\n'
        )
        done = run(tmp_path, "--config", "desk.toml", "explain", "--platform", "slack", "--chat-id", "C1")
        assert "policy   never by time, no message limit\n" in done.stdout

    def test_session_of_the_conversation_is_found(self, tmp_path: Path) -> None:
        url = f"sqlite:///{tmp_path}/some.db"
        asyncio.run(talk(url))
        options = ["--platform", "telegram", "--chat-id", "alice", "--user-id", "alice"]
        allowed = {"FRONTDESK_CHANNELS_TELEGRAM_ALLOW": "alice"}
        done = run(tmp_path, "explain", *options, "--store", url, **allowed)
        assert ", 2 messages\nnext     a message goes on in this session\n" in done.stdout
        assert "sender   telegram:alice: let in as user, by the rule allow_list" in done.stdout

    def test_nothing_is_created_by_asking(self, tmp_path: Path) -> None:
        assert run(tmp_path, "explain", "--platform", "slack", "--chat-id", "C1").returncode == 0
        assert list(tmp_path.iterdir()) == []

    @pytest.mark.parametrize(
        ("options", "why"),
        [
            (["--chat-type", "group"], "names no chat, user or thread"),
            (["--chat-id", "1" * 3000], "longer than"),
        ],
    )
    def test_event_that_would_be_refused_is_said_to_be(
        self, options: list[str], why: str, tmp_path: Path
    ) -> None:
        done = run(tmp_path, "explain", "--platform", "slack", *options)
        assert done.returncode == 1
        assert done.stdout.splitlines()[-1].startswith("next     a message is refused: ")
        assert why in done.stdout.splitlines()[-1]
        asked = run(tmp_path, "explain", "--json", "--platform", "slack", *options)
        assert asked.returncode == 1
        assert why in json.loads(asked.stdout)["refused"]

    @pytest.mark.parametrize(
        ("given", "message"),
        [
            ("", "the input is not a JSON object"),
            (b'{"platform": "\xff"}', "the input is not a JSON object"),
            ("{}", "platform is missing"),
            ('{"platform": "slakc"}', "Unknown platform 'slakc'"),
        ],
    )
    def test_unusable_source_is_an_error_in_one_line(
        self, given: str | bytes, message: str, tmp_path: Path
    ) -> None:
        done = run(tmp_path, "explain", given=given)
        assert (done.returncode, done.stdout) == (1, "")
        assert message in done.stderr
        assert done.stderr.count("\n") == 1

    def test_options_without_a_platform_are_a_usage_error(self, tmp_path: Path) -> None:
        done = run(tmp_path, "explain", "--chat-id", "7")
        assert done.returncode == 2
        assert "Give --platform" in done.stderr

    def test_control_characters_do_not_reach_the_terminal(self, tmp_path: Path) -> None:
        given = '{"platform": "slack", "chat_type": "group", "chat_id": "1", "chat_name": "\\u001b[2J"}'
        assert "\x1b" not in run(tmp_path, "explain", given=given).stdout


class TestBackground:
    def test_work_is_begun_listed_and_ended(self, tmp_path: Path) -> None:
        url = f"sqlite:///{tmp_path}/some.db"
        (tmp_path / "desk.toml").write_text(f'[store]\nurl = "{url}"')
        asyncio.run(talk(url))
        key = "agent:main:telegram:dm:alice"
        assert (
            run(tmp_path, "--config", "desk.toml", "background", "begin", key, "--name", "build").returncode
            == 0
        )
        (work,) = json.loads(run(tmp_path, "--config", "desk.toml", "background", "list", "--json").stdout)
        assert (work["session_key"], work["name"]) == (key, "build")
        for code in (0, 1):
            ended = run(tmp_path, "--config", "desk.toml", "background", "end", key, "--name", "build")
            assert ended.returncode == code
        assert "Nothing runs" in run(tmp_path, "--config", "desk.toml", "background", "list").stdout

    def test_unknown_conversation_is_an_error_in_one_line(self, tmp_path: Path) -> None:
        done = run_afresh(tmp_path, "background", "begin", "20260101_000000_00000000")
        assert (done.returncode, done.stderr.count("\n")) == (1, 1)
