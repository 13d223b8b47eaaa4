"""Which row of the table of routes holds where, and what is refused."""

from typing import Any

import pytest

from frontdesk import GatewayConfig, Platform, SessionSource, errors
from frontdesk.model.policies import SessionResetPolicy
from frontdesk.model.routing import Profile, Routes, RoutingRow, direct

HELP = RoutingRow(platform="discord", profile="help")
SERVER = RoutingRow(platform="discord", scope="G", profile="server")
CHAT = RoutingRow(platform="discord", chat="C", profile="chat")
THREAD = RoutingRow(platform="discord", chat="C", thread="T", profile="thread")
PERSON = RoutingRow(platform="discord", person="ann", profile="person")
IN_CHAT = RoutingRow(platform="discord", chat="C", person="ann", profile="in_chat")
ROWS = (HELP, SERVER, CHAT, THREAD, PERSON, IN_CHAT)


def source(**fields: Any) -> SessionSource:
    return SessionSource(**({"platform": Platform.DISCORD, "chat_type": "group"} | fields))


@pytest.mark.parametrize(
    ("fields", "profile"),
    [
        ({"chat_id": "X"}, "help"),
        ({"chat_id": "X", "scope_id": "G"}, "server"),
        ({"chat_id": "C", "scope_id": "G", "user_id": "bob"}, "chat"),
        ({"chat_id": "new", "parent_chat_id": "C", "scope_id": "G"}, "chat"),
        ({"chat_id": "C", "thread_id": "T", "user_id": "ann"}, "thread"),
        ({"chat_id": "C", "user_id": "ann"}, "in_chat"),
        ({"chat_id": "D", "chat_type": "dm", "user_id": "ann"}, "person"),
        ({"chat_id": "D", "chat_type": "dm", "user_id": "x", "user_id_alt": "ann"}, "person"),
        ({"chat_id": "X", "scope_id": "G", "user_id": "ann"}, "server"),
    ],
)
@pytest.mark.parametrize("rows", [ROWS, ROWS[::-1]])
def test_closest_row_wins_in_whatever_order(
    rows: tuple[RoutingRow, ...], fields: dict[str, Any], profile: str
) -> None:
    assert direct(source(**fields), Routes(rows)).profile == profile


@pytest.mark.parametrize(
    "other",
    [source(account="second", chat_id="C"), SessionSource(platform=Platform.SLACK, chat_id="C")],
)
def test_row_is_about_one_account_alone(other: SessionSource) -> None:
    assert direct(other, Routes(ROWS)).profile is None


def test_what_is_a_persons_own_is_not_shown_to_a_group() -> None:
    assert direct(source(chat_id="X", user_id="ann"), Routes([PERSON])).profile is None


def test_each_thing_comes_from_the_closest_row_that_says_it() -> None:
    rows = (
        RoutingRow(
            platform="discord", scope="G", profile="help", limits={"max_messages": 9, "max_tokens": 5}
        ),
        RoutingRow(platform="discord", chat="C", model="large", limits={"max_messages": 3}),
    )
    found = direct(source(scope_id="G", chat_id="C"), Routes(rows))
    assert (found.profile, found.model, found.prompt) == ("help", "large", None)
    assert found.limits == {"max_messages": 3, "max_tokens": 5}
    assert found.rows == {
        "profile": "row 1 (discord, scope G)",
        "model": "row 2 (discord, chat C)",
        "limits": "row 2 (discord, chat C)",
    }


def test_limits_of_a_row_change_the_policy_that_holds_there() -> None:
    policy = SessionResetPolicy(idle_minutes=7, max_messages=50)
    config = GatewayConfig(
        multiplex_profiles=True,
        profiles={"help": Profile(reset_policy=policy)},
        routes=(HELP, RoutingRow(platform="discord", chat="C", limits={"max_messages": 3})),
    )
    assert config.policy_at(source(chat_id="X")) == policy
    assert config.policy_at(source(chat_id="C")) == SessionResetPolicy(idle_minutes=7, max_messages=3)
    assert config.policy_at(SessionSource(platform=Platform.SLACK, chat_id="C")) == SessionResetPolicy()


@pytest.mark.parametrize(
    "row",
    [
        {"platform": "nowhere", "profile": "help"},
        {"platform": "discord"},
        {"platform": "discord", "chat": "C"},
        {"platform": "discord", "thread": "T", "profile": "help"},
        {"platform": "discord", "chat": "", "profile": "help"},
        {"platform": "discord", "chat": True, "profile": "help"},
        {"platform": "discord", "limits": {"max_mesages": 1}},
        {"platform": "discord", "limits": {"max_messages": -1}},
        {"platform": "discord", "limits": ["max_messages"]},
        {"platform": "whatsapp", "person": "49151", "profile": "help"},
        {"platform": "whatsapp", "chat": "7@lid", "profile": "help"},
    ],
)
def test_row_that_cannot_mean_anything_is_refused(row: dict[str, Any]) -> None:
    with pytest.raises(errors.InvalidSetting):
        RoutingRow(**row)


def test_number_is_an_id_too() -> None:
    row = RoutingRow(platform="telegram", chat=-100, thread=7, profile="help")  # type: ignore[arg-type]
    assert (row.chat, row.thread) == ("-100", "7")


@pytest.mark.parametrize(
    "fields",
    [
        {"routes": (CHAT, RoutingRow(platform="discord", chat="C", profile="help"))},
        {"routes": (RoutingRow(platform="discord", profile="halp"),)},
        {"profiles": {"help": Profile(), "default": Profile()}},
        {"profiles": {"Help me": Profile()}},
        {"profiles": {"a": Profile(accounts=("slack",)), "b": Profile(accounts=("slack",))}},
        {"multiplex_profiles": False},
        {"active_profile": "halp"},
    ],
)
def test_table_that_contradicts_itself_is_refused(fields: dict[str, Any]) -> None:
    known: dict[str, Any] = {"multiplex_profiles": True, "profiles": {"help": Profile(), "chat": Profile()}}
    assert GatewayConfig(**known).profiles
    with pytest.raises((errors.InvalidSetting, errors.UnknownProfile)):
        GatewayConfig(**(known | fields))


def test_configuration_with_routes_is_written_as_plain_data() -> None:
    written = GatewayConfig(routes=(RoutingRow(platform="discord", chat="C", prompt="Be brief."),)).to_dict()
    assert [(row["chat"], row["prompt"]) for row in written["routes"]] == [("C", "Be brief.")]
