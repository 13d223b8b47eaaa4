"""Two agents behind one gateway, as a user starts it."""

import json
import re
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from tests.acceptance import program

FILE = """
[agent]
driver = "scripted"
script = ["I am main."]

[server]
port = 0

[channels.api_server.tokens_env]
ann = "MAIN_TOKEN"

[profiles.help]
prompt = "You help."

[profiles.help.agent]
driver = "scripted"
script = ["I am help."]

[profiles.help.channels.api_server.tokens_env]
ann = "HELP_TOKEN"

[[routes]]
platform = "api_server"
chat = "hall"
profile = "help"
"""
TOKENS: dict[str, Any] = {
    "MAIN_TOKEN": "token-of-the-main-endpoint",
    "HELP_TOKEN": "token-of-the-help-endpoint",
}


def ask(url: str, path: str, token: str) -> tuple[int, str]:
    """The status and the answer, or what is said instead."""
    body = json.dumps({"model": "any", "messages": [{"role": "user", "content": "hello"}]}).encode()
    headers = {"authorization": f"Bearer {TOKENS[token]}", "content-type": "application/json"}
    asked = Request(f"{url}{path}/v1/chat/completions", body, headers)
    try:
        with urlopen(asked, timeout=program.PATIENCE_SECONDS) as answer:
            return answer.status, json.load(answer)["choices"][0]["message"]["content"]
    except HTTPError as refused:
        return refused.code, refused.read().decode()


def test_address_and_account_choose_the_profile_and_no_other_answers(tmp_path: Path) -> None:
    folder = tmp_path / ".frontdesk"
    folder.mkdir()
    (folder / "frontdesk.toml").write_text(FILE)
    with program.start(tmp_path, "run", "--log-level", "warning", **TOKENS) as process:
        found = re.search(r"http://[\d.:]+", program.read_until(process, "agent is"))
        assert found
        url = found[0]
        for path in ("/p/help", "/channels/api_server/help"):
            assert ask(url, path, "HELP_TOKEN") == (200, "I am help.")
            assert ask(url, path, "MAIN_TOKEN")[0] == 401
        for path in ("", "/p/default"):
            assert ask(url, path, "MAIN_TOKEN") == (200, "I am main.")
            assert ask(url, path, "HELP_TOKEN")[0] == 401
        for path in ("/p/halp", "/p/HELP", "/p/", "/p", "/p/help/p/default", "/p/..", "/p/help/.."):
            status, told = ask(url, path, "MAIN_TOKEN")
            assert (status, "I am" in told) == (404, False), path
        status = json.loads(program.run(tmp_path, "status", "--json").stdout)
        assert status["profiles"] == ["help"]
        listed = json.loads(program.run(tmp_path, "sessions", "list", "--json").stdout)
        namespaces = {each["key"].split(":")[1] for each in listed}
        assert namespaces == {"main", "help"}
        explained = program.run(
            tmp_path, "explain", "--platform", "api_server", "--chat-id", "hall", "--user-id", "x"
        ).stdout
        assert "profile  help (row 1 (api_server, chat hall))" in explained
    doctor = program.run(tmp_path, "doctor", **TOKENS).stdout
    assert re.search(r"ok +agent +profile help: scripted", doctor)
    assert re.search(r"ok +channels +api_server, api_server@help, local", doctor)
