"""``frontdesk send``, hooks and agents that say something nobody asked for, as a user runs them."""

import json
import sys
from pathlib import Path

from tests.acceptance import program
from tests.acceptance.test_run import SECRET, TOKEN, Receiver, gateway, post, receiver

__all__ = ["receiver"]

HOME = '\n[platforms.webhook.home_channel]\nchat_id = "ops"\n'
SHOP = '[channels.webhook.shop]\nsecret_env = "SHOP_SECRET"\ncallback_url = "http://127.0.0.1:9/"\n'
HOOK = """\
import json, subprocess, sys
told = json.load(sys.stdin)
said = [{frontdesk!r}, "send", "origin", "Welcome.", "--session", told["session"]["session_id"]]
for _ in range(2):
    subprocess.run([*said, "--key", told["idempotency_key"]], check=True)
"""


def arrived(receiver: Receiver) -> set[tuple[str, str, str]]:
    """The id, the chat and the text of each message; a receiver knows one again by its id."""
    return {(each["id"], each["chat_id"], each["text"]) for each in receiver.got}


def send(home: Path, *arguments: str, given: str = "") -> str:
    done = program.run(home, "send", *arguments, given=given, SHOP_SECRET=SECRET, ANN_TOKEN=TOKEN)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_what_is_sent_without_a_gateway_goes_when_one_runs_and_once(
    tmp_path: Path, receiver: Receiver
) -> None:
    with gateway(tmp_path, receiver, HOME):
        assert "goes to webhook@shop, chat ops." in send(tmp_path, "webhook", "at once")
        receiver.wait_for(1)
    assert "goes to webhook@shop, chat c:1." in send(
        tmp_path, "webhook:c%3A1:t", "-", "--key", "k", given="a\nb\n"
    )
    assert "was handed in before; it is pending" in send(tmp_path, "webhook:c%3A1:t", "a\nb", "--key", "k")
    refused = program.run(tmp_path, "send", "matrix:!a:b", "x", SHOP_SECRET=SECRET, ANN_TOKEN=TOKEN)
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "no channel is connected for matrix" in refused.stderr
    with gateway(tmp_path, receiver, HOME):
        receiver.wait_for(2)
    assert {(chat, text) for _, chat, text in arrived(receiver)} == {("ops", "at once"), ("c:1", "a\nb")}


def test_what_is_sent_before_the_first_start_is_on_disk(tmp_path: Path) -> None:
    file = tmp_path / ".frontdesk" / "frontdesk.toml"
    file.parent.mkdir()
    file.write_text(SHOP + HOME)
    assert "goes to webhook@shop, chat ops." in send(tmp_path, "webhook", "at first", "--key", "k")
    assert "was handed in before; it is pending" in send(tmp_path, "webhook", "at first", "--key", "k")


def test_agents_message_goes_once_though_the_process_dies_after_it(
    tmp_path: Path, receiver: Receiver
) -> None:
    with gateway(tmp_path, receiver, HOME) as (process, url):
        assert post(url, "e1", "!send webhook told; !exit 1; ok") == 202
        assert process.wait(program.PATIENCE_SECONDS) != 0
    with gateway(tmp_path, receiver, HOME):
        receiver.wait_for(2)
    assert sorted((chat, text) for _, chat, text in arrived(receiver)) == [
        ("c1", "echo: ok"),
        ("ops", "told"),
    ]


def test_hook_that_hears_twice_speaks_once_where_its_session_is(tmp_path: Path, receiver: Receiver) -> None:
    hook = tmp_path / "hook.py"
    hook.write_text(HOOK.format(frontdesk=str(program.FRONTDESK)))
    command = json.dumps([sys.executable, str(hook)])
    with gateway(tmp_path, receiver, f"[hooks]\non_session_start = {command}\n") as (_, url):
        assert post(url, "e1", "hello") == 202
        receiver.wait_for(2)
    assert sorted((chat, text) for _, chat, text in arrived(receiver)) == [
        ("c1", "Welcome."),
        ("c1", "echo: hello"),
    ]
