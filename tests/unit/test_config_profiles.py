"""Profiles and routes, as the file says them."""

from pathlib import Path
from typing import Any

import pytest

from frontdesk import config, errors
from frontdesk.app import build
from frontdesk.config import Config
from frontdesk.model.access import Access, decide
from frontdesk.model.platforms import Platform
from frontdesk.model.policies import SessionResetPolicy
from frontdesk.model.sources import SessionSource

FILE = """
[agent]
driver = "scripted"

[channels.webhook]
secret_env = "SECRET"
callback_url = "http://127.0.0.1:9/"
allow = ["chat:hall", "webhook@help:eve"]
block = ["mal"]

[profiles.help]
prompt = "You help."
working_dir = "help"

[profiles.help.agent]
driver = "command"
command = ["true"]

[profiles.help.session_reset]
max_messages = 50

[profiles.help.channels.webhook]
secret_env = "HELP_SECRET"
callback_url = "http://127.0.0.1:9/"
allow = ["ann", "chat:a:b"]
strangers = "pair"

[[routes]]
platform = "webhook"
chat = 7
profile = "help"
limits = { max_messages = 5 }
"""


def load(folder: Path, text: str = FILE) -> Config:
    file = folder / "frontdesk.toml"
    file.write_text(text, encoding="utf-8")
    return config.load(file, environ={"HOME": str(folder)})


def source(**fields: Any) -> SessionSource:
    return SessionSource(platform=Platform.WEBHOOK, **fields)


def test_profile_has_what_its_tables_say(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    loaded = load(tmp_path)
    profile = loaded.gateway.profiles["help"]
    assert (profile.prompt, profile.working_dir) == ("You help.", str(tmp_path / "help"))
    assert profile.accounts == ("webhook@help",)
    assert profile.reset_policy == SessionResetPolicy(max_messages=50)
    assert loaded.gateway.multiplex_profiles
    assert [each.value for each in loaded.values if each.name == "multiplex_profiles"] == [True]
    assert loaded.gateway.profile_of(source(account="help"))[0] == "help"
    assert loaded.gateway.profile_of(source(chat_id="7")) == ("help", "row 1 (webhook, chat 7)")
    assert loaded.gateway.profile_of(source(chat_id="8"))[0] is None
    accounts = [(channel.name, channel.account) for channel in build.make_channels(loaded)]
    assert accounts == [("webhook", None), ("webhook", "help"), ("local", None), ("web", None)]
    assert [
        str(each.path) for each in loaded.values if each.path[0] == "profiles" and "mode" in each.path
    ] == ["('profiles', 'help', 'session_reset', 'mode')"]


@pytest.mark.parametrize(
    ("fields", "allowed"),
    [
        ({"account": "help", "user_id": "ann"}, True),
        ({"account": "help", "user_id": "x", "chat_id": "a:b"}, True),
        ({"account": "help", "user_id": "eve"}, True),
        ({"account": "help", "user_id": "x", "chat_id": "hall"}, False),
        ({"account": "help", "user_id": "mal", "chat_id": "a:b"}, False),
        ({"user_id": "ann"}, False),
        ({"user_id": "x", "chat_id": "hall"}, True),
    ],
)
def test_who_may_use_an_account_of_a_profile_stands_in_the_profile(
    tmp_path: Path, fields: dict[str, str], allowed: bool
) -> None:
    gateway = load(tmp_path).gateway
    place = source(**fields)
    assert decide(place, False, gateway.get_access("webhook", place.account)).allowed is allowed


def test_platform_that_only_a_profile_has_is_closed_elsewhere(tmp_path: Path) -> None:
    gateway = load(tmp_path, '[profiles.help.channels.telegram]\nallow = ["*"]').gateway
    assert gateway.get_access("telegram") == Access()
    assert gateway.get_access("telegram", "second") == Access()
    assert decide(
        SessionSource(platform=Platform.TELEGRAM, account="help", user_id="1"),
        False,
        gateway.get_access("telegram", "help"),
    ).allowed


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[profiles.default]\nprompt = 'x'", "no setting profiles.default"),
        ("[profiles.help]\npromt = 'x'", r"no setting profiles\.help\.promt"),
        ("[profiles.help.agent]\nmodel = 'x'", r"profiles\.help\.agent\.driver is missing"),
        ("[profiles.help.channels.telegram]\nallow = 'ann'", r"profiles\.help\.channels\.telegram\.allow"),
        (
            "[profiles.help.channels.telegram]\nallow = ['telegram@other:1']",
            "allow is 'telegram@other:1'; allowed: ids of this account: help",
        ),
        (
            "[channels.webhook.help]\nsecret_env = 'X'\n[profiles.help.channels.webhook]\nsecret_env = 'X'",
            r"\[channels\.webhook\.help\], too",
        ),
        ("multiplex_profiles = false\n[profiles.help]\nprompt = 'x'", "since there are profiles"),
        ("active_profile = 'halp'\n[profiles.help]\nprompt = 'x'", "no profile 'halp'"),
        (
            "[profiles.help]\nworking_dir = '/a'\n[profiles.help.agent]\ndriver='x'\ncwd='/b'",
            "the same folder",
        ),
        ("routes = 7", "routes is 7"),
        ("[[routes]]\nchat = '7'", r"routes \(row 1\)\.platform is missing"),
        ("[[routes]]\nplatform = 'slack'\nchta = '7'", r"routes \(row 1\)\.chta\. Did you mean chat"),
        ("[[routes]]\nplatform = 'slack'\nprofile = 'help'", r"routes \(row 1\)\.profile is 'help'"),
    ],
)
def test_what_cannot_be_meant_is_refused_by_name(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(errors.InvalidInput, match=message):
        load(tmp_path, text)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("account = 'halp'\nprofile = 'help'", "account is 'halp'; allowed: one of webhook, webhook@help"),
        ("chat = '9'\nmodel = 'x'\nprofile = 'help'", "model is 'x'; allowed: nothing"),
    ],
)
async def test_row_that_could_not_do_what_it_says_is_refused_before_the_start(
    tmp_path: Path, row: str, message: str
) -> None:
    loaded = load(tmp_path, f"{FILE}\n[[routes]]\nplatform = 'webhook'\n{row}")
    with pytest.raises(errors.InvalidSetting, match=message):
        await build.check(loaded)


async def test_terminal_is_nobodys_account(tmp_path: Path) -> None:
    text = '[agent]\ndriver = "scripted"\n[profiles.help.channels.local]\nallow = ["x"]'
    with pytest.raises(errors.InvalidSetting, match="send chats of it here with"):
        await build.check(load(tmp_path, text))


def test_every_secret_of_a_profile_is_looked_for(tmp_path: Path) -> None:
    missing = [str(each) for each in build.missing_secrets(load(tmp_path))]
    assert any("profiles.help.channels.webhook.secret_env" in each for each in missing)
