"""The configuration of the session layer."""

import json
import math
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frontdesk import errors
from frontdesk.model.gateway import MAX_FRESHNESS_SECONDS, GatewayConfig
from frontdesk.model.platforms import HomeChannel, Platform, PlatformConfig
from frontdesk.model.policies import SessionResetPolicy
from frontdesk.model.sources import ChatType

HOME = HomeChannel(platform=Platform.TELEGRAM, chat_id="-100", name="Ops")
CONFIG = GatewayConfig(
    platforms={
        "slack": PlatformConfig(enabled=True),
        "telegram": PlatformConfig(enabled=True, home_channel=HOME),
        "discord": PlatformConfig(),
    }
)


def limited(max_messages: int) -> SessionResetPolicy:
    """A policy that can be told from others."""
    return SessionResetPolicy(max_messages=max_messages)


def test_configuration_alone_is_valid() -> None:
    config = GatewayConfig()
    assert config.get_reset_policy(Platform.TELEGRAM, "dm") == SessionResetPolicy()
    assert config.get_connected_platforms() == []
    assert config.get_home_channel(Platform.TELEGRAM) is None
    sharing = (config.group_sessions_per_user, config.thread_sessions_per_user, config.multiplex_profiles)
    assert sharing == (True, False, False)
    assert config.freshness == timedelta(seconds=3600)


@given(st.booleans(), st.booleans(), st.booleans())
def test_most_specific_policy_wins(by_chat: bool, by_platform: bool, by_type: bool) -> None:
    config = GatewayConfig(
        default_reset_policy=limited(1),
        reset_by_type={"group": limited(2)} if by_type else {},
        reset_by_platform={"telegram": limited(3)} if by_platform else {},
        reset_by_chat={"telegram:-100:7": limited(4)} if by_chat else {},
    )
    found = config.get_reset_policy(Platform.TELEGRAM, ChatType.GROUP, "-100:7").max_messages
    assert found == (4 if by_chat else 3 if by_platform else 2 if by_type else 1)


def test_policy_of_another_chat_type_or_platform_does_not_hold() -> None:
    config = GatewayConfig(
        default_reset_policy=limited(1),
        reset_by_type={"group": limited(2)},
        reset_by_platform={"telegram": limited(3)},
        reset_by_chat={"telegram:5": limited(4)},
    )
    assert config.get_reset_policy("slack", "dm", "5").max_messages == 1
    assert config.get_reset_policy("slack", "group", "5").max_messages == 2
    assert config.get_reset_policy("telegram", "dm", "6").max_messages == 3
    assert config.get_reset_policy(None, None, None).max_messages == 1
    assert config.get_reset_policy(None, "group").max_messages == 2


def test_connected_platforms_are_the_enabled_ones_in_order() -> None:
    assert CONFIG.get_connected_platforms() == [Platform.SLACK, Platform.TELEGRAM]


def test_platform_that_nobody_registered_is_not_connected() -> None:
    config = GatewayConfig(platforms={"fax": PlatformConfig(enabled=True)})
    assert config.get_connected_platforms() == []


def test_home_channel_is_found_by_platform() -> None:
    assert CONFIG.get_home_channel(Platform.TELEGRAM) == HOME
    assert CONFIG.get_home_channel("telegram") == HOME
    assert CONFIG.get_home_channel(Platform.SLACK) is None
    assert CONFIG.get_home_channel(Platform.EMAIL) is None


@pytest.mark.parametrize("seconds", [0, -1, -math.inf])
def test_freshness_can_be_turned_off(seconds: Any) -> None:
    assert GatewayConfig(auto_continue_freshness_seconds=seconds).freshness is None


@pytest.mark.parametrize("seconds", [math.inf, math.nan, 1e300, MAX_FRESHNESS_SECONDS + 1, True, "60", None])
def test_freshness_that_is_no_time_is_refused(seconds: Any) -> None:
    with pytest.raises(errors.InvalidSetting, match="auto_continue_freshness_seconds"):
        GatewayConfig(auto_continue_freshness_seconds=seconds)


@pytest.mark.parametrize(
    "name", ["group_sessions_per_user", "thread_sessions_per_user", "multiplex_profiles"]
)
@pytest.mark.parametrize("value", [None, 1, "true"])
def test_flag_that_is_neither_true_nor_false_is_refused(name: str, value: Any) -> None:
    with pytest.raises(errors.InvalidSetting, match=f"{name} is .*; allowed: true or false"):
        GatewayConfig(**{name: value})


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        (
            "default_reset_policy",
            {"mode": "none"},
            "default_reset_policy is .*; allowed: a SessionResetPolicy",
        ),
        ("default_reset_policy", None, "default_reset_policy is None"),
        ("reset_by_type", None, "reset_by_type is None; allowed: a mapping of names to SessionResetPolicy"),
        ("reset_by_type", {"dm": "none"}, r"reset_by_type\.dm is 'none'; allowed: a SessionResetPolicy"),
        (
            "reset_by_type",
            {"dmm": limited(1)},
            "reset_by_type is 'dmm'; allowed: .*dm, group, channel, thread",
        ),
        ("reset_by_platform", {"telegram": None}, r"reset_by_platform\.telegram is None"),
        ("reset_by_platform", {7: limited(1)}, "reset_by_platform is 7; allowed: names that are texts"),
        ("reset_by_chat", {"telegram:5": 1}, r"reset_by_chat\.telegram:5 is 1"),
        ("reset_by_chat", {"5": limited(1)}, "reset_by_chat is '5'; allowed: .*platform:chat_id"),
        ("reset_by_chat", {"telegram:": limited(1)}, "reset_by_chat is 'telegram:'"),
        ("reset_by_chat", {":5": limited(1)}, "reset_by_chat is ':5'"),
        ("platforms", ["telegram"], "platforms is .*; allowed: a mapping of names to PlatformConfig"),
        ("platforms", {"telegram": True}, r"platforms\.telegram is True; allowed: a PlatformConfig"),
    ],
)
def test_table_that_does_not_fit_is_refused_by_name(key: str, value: Any, message: str) -> None:
    with pytest.raises(errors.InvalidSetting, match=message):
        GatewayConfig(**{key: value})


def test_platform_that_a_plug_in_adds_later_may_be_configured() -> None:
    config = GatewayConfig(
        platforms={"telex": PlatformConfig()},
        reset_by_platform={"telex": limited(1)},
        reset_by_chat={"telex:1": limited(2)},
    )
    assert config.get_reset_policy("telex", "dm", "1").max_messages == 2


def test_dict_form_is_plain_json() -> None:
    data = json.loads(json.dumps(CONFIG.to_dict()))
    assert data["platforms"]["telegram"]["home_channel"] == HOME.to_dict()
    assert data["default_reset_policy"] == SessionResetPolicy().to_dict()
    assert data["auto_continue_freshness_seconds"] == 3600
