"""The settings of confirmations."""

import tomllib
from pathlib import Path

import pytest

from frontdesk import config, errors
from frontdesk.config import settings
from frontdesk.model.confirmations import Mode


def load(tmp_path: Path, text: str = "", **environ: str) -> config.Config:
    file = tmp_path / "frontdesk.toml"
    file.write_text(text, encoding="utf-8")
    return config.load(file, environ={"HOME": str(tmp_path)} | environ)


def test_defaults_are_those_of_the_service(tmp_path: Path) -> None:
    confirm = load(tmp_path).confirm
    assert (confirm.enabled, confirm.host, confirm.port) == (True, "127.0.0.1", 6000)
    assert (confirm.mode, confirm.rate_limit) == (Mode.SOLO, 10)
    assert (confirm.people.approvers, confirm.people.agents) == ({}, {})


def test_file_sets_everything(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    token = tmp_path / "bob"
    token.write_text("bob's token, and long enough\n")
    text = f"""
    [confirm]
    enabled = false
    host = "::1"
    port = 7000
    mode = "strict"
    rate_limit = 3
    callbacks = ["https://ci.example/hooks/"]
    callback_secret_env = "HOOK_SECRET"
    page_url = "https://desk.example"
    token_env = "MY_TOKEN"
    approvers_env = {{ ann = "ANN_TOKEN" }}
    [confirm.agents_file]
    ci = "{token}"
    """
    monkeypatch.setenv("ANN_TOKEN", "ann's token, and long enough")
    confirm = load(tmp_path, text).confirm
    assert (confirm.enabled, confirm.host, confirm.port, confirm.token_env) == (
        False,
        "::1",
        7000,
        "MY_TOKEN",
    )
    assert (confirm.mode, confirm.rate_limit) == (Mode.STRICT, 3)
    assert confirm.callbacks == ("https://ci.example/hooks/",)
    assert confirm.page_url == "https://desk.example"
    assert confirm.people.approvers["ann"]() == "ann's token, and long enough"
    assert confirm.people.agents["ci"]() == "bob's token, and long enough"


def test_tokens_in_variables_and_in_files_add_up(tmp_path: Path) -> None:
    text = 'confirm.approvers_env = { ann = "ANN" }\nconfirm.approvers_file = { bob = "/etc/bob" }'
    assert set(load(tmp_path, text).confirm.people.approvers) == {"ann", "bob"}
    with pytest.raises(errors.InvalidSetting, match="once"):
        load(tmp_path, text.replace("bob", "ann"))


def test_short_variables_set_the_address_and_the_usual_ones_win(tmp_path: Path) -> None:
    short = {"CONFIRMATION_HOST": "::1", "CONFIRMATION_PORT": "7001", "CONFIRMATION_RATE_LIMIT": "4"}
    confirm = load(tmp_path, "confirm.port = 7000", **short).confirm
    assert (confirm.host, confirm.port, confirm.rate_limit) == ("::1", 7001, 4)
    for order in (short | {"FRONTDESK_CONFIRM_PORT": "7002"}, {"FRONTDESK_CONFIRM_PORT": "7002"} | short):
        loaded = load(tmp_path, **order)
        assert (loaded.confirm.port, loaded.unknown_variables) == (7002, ())


@pytest.mark.parametrize(
    "text",
    [
        'confirm.mode = "lax"',
        "confirm.port = 70000",
        "confirm.rate_limit = 0",
        'confirm.callbacks = ["https://ci.example"]',
        'confirm.callbacks = ["ftp://ci.example/"]',
        'confirm.callbacks = ["https://ann@ci.example/"]',
        'confirm.page_url = "desk.example"',
        'confirm.approvers = { ann = "the token itself" }',
        'confirm.approvers_env = { "two words" = "X" }',
        'confirm.approvers_env = { approver = "X" }',
        'confirm = { approvers_env = { ann = "X" }, agents_env = { ann = "Y" } }',
        "confirm.approvers_env = 1",
    ],
)
def test_what_is_not_allowed_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(errors.InvalidSetting, match="confirm"):
        load(tmp_path, text)


def test_callbacks_need_a_secret_to_sign_them(tmp_path: Path) -> None:
    with pytest.raises(errors.MissingSetting, match=r"callback_secret_env is missing: .* must be signed"):
        load(tmp_path, 'confirm.callbacks = ["https://ci.example/hooks/"]')


def test_token_in_the_file_is_not_repeated(tmp_path: Path) -> None:
    with pytest.raises(errors.InvalidSetting) as refused:
        load(tmp_path, 'confirm.approvers = { ann = "the token itself" }')
    assert "the token itself" not in str(refused.value)


def test_misspelt_setting_is_met_with_the_right_one(tmp_path: Path) -> None:
    with pytest.raises(errors.UnknownSetting, match=r"Did you mean confirm\.rate_limit\?"):
        load(tmp_path, "confirm.rate_limits = 1")


def test_what_is_shown_can_be_read_again(tmp_path: Path) -> None:
    loaded = load(tmp_path, 'confirm.approvers_env = { ann = "ANN_TOKEN", "b@c" = "B" }')
    (value,) = (each for each in loaded.values if each.name == "confirm.approvers_env")
    shown = tomllib.loads(f"{value.name} = {settings.as_toml(value.shown)}")
    assert shown == {"confirm": {"approvers_env": {"ann": "ANN_TOKEN", "b@c": "B"}}}


@pytest.mark.parametrize(
    "account", ["42", "Telegram:42", "telegram: 42", "telegram:", ":42", "telegram 42", ""]
)
def test_account_that_is_nobodys_name_is_refused(tmp_path: Path, account: str) -> None:
    """It would be one person more."""
    with pytest.raises(errors.InvalidSetting, match=r"confirm\.accounts"):
        load(tmp_path, f'[confirm.accounts]\napprover = ["{account}"]')


@pytest.mark.parametrize("account", ["telegram:42", "telegram@second:42", "matrix:@ann:example.org", "local"])
def test_account_is_of_the_approvers_person(tmp_path: Path, account: str) -> None:
    confirm = load(tmp_path, f'[confirm.accounts]\napprover = ["{account}"]').confirm
    assert confirm.persons == (frozenset({"token:approver", "local", account}),)
