"""Platforms: an open set of names, and how each is set up."""

import copy
import json
import pickle
import secrets
from typing import Any

import pytest

from frontdesk import errors
from frontdesk.model.platforms import HomeChannel, Platform, PlatformConfig

BUILT_IN = [
    "local",
    "telegram",
    "discord",
    "slack",
    "whatsapp",
    "signal",
    "matrix",
    "email",
    "webhook",
    "api_server",
    "bluebubbles",
    "feishu",
    "weixin",
    "yuanbao",
    "web",
]


@pytest.mark.parametrize("name", BUILT_IN)
def test_built_in_platform_is_a_constant_of_its_name(name: str) -> None:
    platform = Platform(name)
    assert platform is getattr(Platform, name.upper())
    assert platform == name
    assert platform.value == name
    assert type(str(platform)) is str


def test_platform_of_a_platform_is_itself() -> None:
    assert Platform(Platform.TELEGRAM) is Platform.TELEGRAM


def test_platform_is_written_as_its_name() -> None:
    assert json.dumps({"platform": Platform.SLACK}) == '{"platform": "slack"}'
    assert f"{Platform.SLACK}" == "slack"
    assert {"slack": 1}[Platform.SLACK] == 1


def test_copy_of_a_platform_is_the_same_platform() -> None:
    matrix = Platform.MATRIX
    assert copy.copy(matrix) is copy.deepcopy(matrix) is pickle.loads(pickle.dumps(matrix)) is matrix


@pytest.mark.parametrize("name", ["fax", "", "Telegram", " telegram", "None"])
def test_unknown_platform_is_refused_by_name(name: str) -> None:
    with pytest.raises(errors.UnknownPlatform) as caught:
        Platform(name)
    assert repr(name) in str(caught.value)
    assert "telegram" in str(caught.value)


@pytest.mark.parametrize("value", ["fax", None, 7, ["telegram"], b"telegram"])
def test_unknown_platform_parses_as_none(value: object) -> None:
    assert Platform.parse(value) is None


def test_known_platform_parses() -> None:
    assert Platform.parse("telegram") is Platform.TELEGRAM


def test_plug_in_adds_a_platform() -> None:
    name = f"pigeon-{secrets.token_hex(4)}"
    assert Platform.parse(name) is None
    added = Platform.register(name)
    assert Platform(name) is Platform.parse(name) is added
    assert Platform.register(name) is added


def test_known_platforms_are_the_built_in_ones_and_then_the_others() -> None:
    added = Platform.register("test-heliograph")
    known = Platform.known()
    assert list(known[: len(BUILT_IN)]) == BUILT_IN
    assert added in known[len(BUILT_IN) :]


def test_plug_in_states_whether_ids_may_be_redacted() -> None:
    assert Platform.register("test-semaphore", pii_safe=True).pii_safe
    assert not Platform.register("test-smoke-signals").pii_safe


def test_registering_a_built_in_again_gives_the_same_one() -> None:
    assert Platform.register("telegram") is Platform.TELEGRAM
    assert Platform.TELEGRAM.pii_safe


@pytest.mark.parametrize("name", ["", "A", "a b", "a:b", "a@b", "a/b", "..", "-a", "a" * 65, "é", "a\n"])
def test_name_that_would_make_keys_ambiguous_is_refused(name: str) -> None:
    with pytest.raises(errors.InvalidInput, match="Platform name"):
        Platform.register(name)
    assert Platform.parse(name) is None


def test_ids_not_needed_for_mentions_may_be_redacted() -> None:
    redactable = {name for name in BUILT_IN if Platform(name).pii_safe}
    assert redactable == {"whatsapp", "signal", "telegram", "bluebubbles"}


def test_home_channel_reads_what_it_wrote() -> None:
    home = HomeChannel(platform=Platform.TELEGRAM, chat_id="-100", name="Ops")
    assert home.to_dict() == {"platform": "telegram", "chat_id": "-100", "name": "Ops"}
    assert HomeChannel.from_dict(dict(home.to_dict())) == home


def test_home_channel_id_becomes_a_text_and_its_name_has_a_default() -> None:
    home = HomeChannel.from_dict({"platform": "telegram", "chat_id": -100})
    assert (home.chat_id, home.name) == ("-100", "Home")


@pytest.mark.parametrize("chat_id", [None, ""])
def test_home_channel_needs_a_chat(chat_id: object) -> None:
    with pytest.raises(errors.InvalidSetting, match=r"home_channel\.chat_id"):
        HomeChannel.from_dict({"platform": "telegram", "chat_id": chat_id})


def test_platform_is_off_until_enabled() -> None:
    assert PlatformConfig() == PlatformConfig(enabled=False, home_channel=None, tools=False)


@pytest.mark.parametrize(
    ("field", "value", "allowed"),
    [
        ("platform", "fax", "local, telegram"),
        ("platform", None, "local, telegram"),
        ("chat_id", "", "a chat id"),
        ("chat_id", " ", "a chat id"),
        ("chat_id", None, "a chat id"),
        ("chat_id", 5, "a chat id"),
        ("name", None, "a text"),
        ("name", 5, "a text"),
    ],
)
def test_home_channel_that_leads_nowhere_is_refused(field: str, value: Any, allowed: str) -> None:
    fields: dict[str, Any] = {"platform": Platform.TELEGRAM, "chat_id": "-100", "name": "Ops"}
    with pytest.raises(errors.InvalidSetting, match=rf"home_channel\.{field} is .*; allowed: {allowed}"):
        HomeChannel(**fields | {field: value})


def test_home_channel_takes_the_name_of_its_platform() -> None:
    name: Any = "telegram"
    assert HomeChannel(platform=name, chat_id="1", name="").platform is Platform.TELEGRAM


@pytest.mark.parametrize(
    ("field", "value"), [("enabled", "yes"), ("enabled", None), ("tools", 1), ("home_channel", "-100")]
)
def test_platform_that_is_set_up_wrongly_is_refused(field: str, value: Any) -> None:
    with pytest.raises(errors.InvalidSetting, match=f"{field} is .*; allowed: "):
        PlatformConfig(**{field: value})
