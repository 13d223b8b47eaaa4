"""The options of agents and channels in the configuration file."""

from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path

import msgspec
import pytest

from frontdesk import config, errors
from frontdesk.app import build
from frontdesk.config.options import read_options
from frontdesk.contracts.secrets import Secret


class Mood(StrEnum):
    CALM = "calm"
    WILD = "wild"


class Options(msgspec.Struct, frozen=True, kw_only=True):
    model: str
    mood: Mood = Mood.CALM
    seconds: float = 1.0
    words: tuple[str, ...] = ()
    api_key: Secret | None = None
    secrets: tuple[Secret, ...] = ()
    tokens: Mapping[str, Secret] = {}


def read(**table: object) -> Options:
    return read_options(Options, table, ("agent",))


def loaded(text: str, folder: Path) -> config.Config:
    file = folder / "frontdesk.toml"
    file.write_text(text)
    return config.load(file, {"HOME": str(folder)})


def test_plain_options_are_read() -> None:
    options = read(model="m", seconds=2, words=["a", "b"])
    assert (options.model, options.seconds, options.words) == ("m", 2.0, ("a", "b"))


def test_words_that_an_option_takes_are_named() -> None:
    with pytest.raises(errors.InvalidSetting, match=r"agent.mood is 'cross'; allowed: calm, wild$"):
        read(model="m", mood="cross")


def test_secret_is_read_from_the_variable_at_each_use(monkeypatch: pytest.MonkeyPatch) -> None:
    options = read(model="m", api_key_env="LAB_KEY")
    assert options.api_key
    for value in ("one", "two"):
        monkeypatch.setenv("LAB_KEY", value)
        assert options.api_key() == value


def test_secret_is_read_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "key"
    file.write_text("from file\n")
    options = read(model="m", api_key_file=str(file))
    assert options.api_key
    assert options.api_key() == "from file"


def test_missing_secret_names_variable_and_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LAB_KEY", raising=False)
    options = read(model="m", api_key_env="LAB_KEY")
    assert options.api_key
    with pytest.raises(errors.MissingSecret, match=r"LAB_KEY.*agent\.api_key_env"):
        options.api_key()


def test_several_secrets_and_secrets_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("A", "B"):
        monkeypatch.setenv(f"LAB_{name}", name)
    options = read(model="m", secrets_env=["LAB_A", "LAB_B"], tokens_env={"ann": "LAB_A"})
    assert [secret() for secret in options.secrets] == ["A", "B"]
    assert options.tokens["ann"]() == "A"
    assert [secret() for secret in read(model="m", secret_env="LAB_A").secrets] == ["A"]


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"model": "m", "modle": 1}, r"no setting agent\.modle\. Did you mean agent\.model\?"),
        ({"model": "m", "zzz": 1}, "Known here: model"),
        ({"model": 1}, r"agent\.model"),
        ({}, r"agent\.model is missing"),
        ({"model": "m", "seconds": "soon"}, r"agent\.seconds"),
        ({"model": "m", "api_key_env": 3}, r"agent\.api_key_env"),
        ({"model": "m", "tokens_env": "X"}, r"agent\.tokens_env"),
    ],
)
def test_mistake_is_an_error_that_names_the_setting(table: dict[str, object], message: str) -> None:
    with pytest.raises(errors.InvalidSetting, match=message):
        read_options(Options, table, ("agent",))


def test_secret_in_the_file_is_refused_and_not_shown() -> None:
    with pytest.raises(errors.InvalidSetting, match="name an environment variable in api_key_env") as refused:
        read(model="m", api_key="hunter2")
    assert "hunter2" not in str(refused.value)


def test_issues_own_example_is_a_valid_file(tmp_path: Path) -> None:
    text = """
        [agent]
        driver = "command"
        command = ["true"]
        [channels.webhook.shop]
        secret_env = "SHOP"
        callback_url = "http://127.0.0.1:9/"
        [session_reset]
        max_messages = 200
    """
    made = loaded(text, tmp_path)
    names = [(channel.name, channel.account) for channel in build.make_channels(made)]
    assert names == [("webhook", "shop"), ("local", None), ("web", None)]


async def test_misspelt_option_of_a_channel_is_found_by_the_check(tmp_path: Path) -> None:
    made = loaded('[agent]\ndriver = "scripted"\n[channels.webhook]\nalow = ["*"]', tmp_path)
    with pytest.raises(errors.UnknownSetting, match=r"Did you mean channels\.webhook\.allow\?"):
        await build.check(made)


async def test_unknown_driver_is_found_by_the_check(tmp_path: Path) -> None:
    with pytest.raises(errors.UnknownPart, match=r"comand.*Known: acp, command"):
        await build.check(loaded('[agent]\ndriver = "comand"', tmp_path))


@pytest.mark.parametrize(("driver", "meant"), [("comand", "command"), ("pydantic-ai", "pydantic_ai")])
async def test_mistyped_driver_gets_a_suggestion(tmp_path: Path, driver: str, meant: str) -> None:
    with pytest.raises(errors.UnknownPart, match=rf"Did you mean {meant}\?"):
        await build.check(loaded(f'[agent]\ndriver = "{driver}"', tmp_path))


async def test_rules_for_a_channel_that_does_not_exist_are_an_error(tmp_path: Path) -> None:
    made = loaded('[agent]\ndriver = "scripted"\n[channels.signal]\nallow = ["7"]', tmp_path)
    with pytest.raises(errors.UnknownPart, match="no channel called 'signal'") as refused:
        await build.check(made)
    assert "remove the table channels.signal" in str(refused.value.__notes__)


async def test_rules_for_a_channel_that_is_not_set_up_name_what_is_missing(tmp_path: Path) -> None:
    made = loaded('[agent]\ndriver = "scripted"\n[channels.webhook]\nallow = ["7"]', tmp_path)
    with pytest.raises(errors.MissingSetting, match=r"channels\.webhook\."):
        await build.check(made)


def test_rules_for_the_terminal_need_no_channel(tmp_path: Path) -> None:
    made = loaded('[channels.local]\nblock = ["7"]', tmp_path)
    assert [channel.name for channel in build.make_channels(made)] == ["local", "web"]
