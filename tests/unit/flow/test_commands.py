"""Which messages are commands, and what they say."""

import pytest

from frontdesk.flow.commands import registry
from frontdesk.model.turns import TurnKind

CONTROL = {"stop", "status", "approve", "deny", "lift", "help"}
STOPPING = {"new", "resume", "branch"}
NAMES = [name for command in registry.COMMANDS for name in (command.name, *command.aliases)]


def parsed(text: str) -> tuple[str, str] | None:
    found = registry.parse(text)
    return (found[0].name, found[1]) if found else None


@pytest.mark.parametrize("name", NAMES)
def test_every_command_is_found_in_any_case(name: str) -> None:
    assert parsed(f"/{name}") == parsed(f"/{name.upper()}") == parsed(f"  /{name.title()}\n")
    assert parsed(f"/{name}") is not None


def test_no_two_commands_have_the_same_name() -> None:
    assert len(NAMES) == len(set(NAMES))


def test_reset_is_another_name_of_new() -> None:
    assert parsed("/reset") == ("new", "")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("/title@frontdesk_bot My trip", ("title", "My trip")),
        ("/help@frontdesk_bot", ("help", "")),
        ("/title   Überfahrt nach 東京 🚢", ("title", "Überfahrt nach 東京 🚢")),
        ("/search first\nsecond", ("search", "first\nsecond")),
        ("/search\nwords", ("search", "words")),
        ("/title\u00a0with another space", ("title", "with another space")),
        ("/deny c_1 too  dangerous ", ("deny", "c_1 too  dangerous")),
        ("/resume /etc/hosts", ("resume", "/etc/hosts")),
    ],
)
def test_what_follows_a_command_is_its_argument(text: str, expected: tuple[str, str]) -> None:
    assert parsed(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "/etc/hosts",
        "/new/thing",
        "/newer words",
        "/unknown",
        "/",
        "//new",
        "/ new",
        "new",
        "please /new",
        "/new-york",
        "/новый",
        "/ｎｅｗ",
        "/new.",
        "/@bot",
        "",
    ],
)
def test_other_messages_are_no_commands(text: str) -> None:
    assert registry.parse(text) is None


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("/resum", "resume"),
        ("/hlep", "help"),
        ("/Sesions@bot", "sessions"),
        ("/newer", "new"),
        ("/rset", "reset"),
    ],
)
async def test_slip_is_answered_with_what_may_have_been_meant(text: str, meant: str) -> None:
    found = registry.parse(text)
    assert found is not None
    assert found[0].kind is TurnKind.CONTROL
    assert f"Did you mean /{meant}?" in found[0].help


@pytest.mark.parametrize("text", ["/resum My trip", "/resum\nmore", "/etc", "/nosuch", "/explain", "/review"])
def test_what_is_no_slip_goes_to_the_agent(text: str) -> None:
    assert registry.parse(text) is None


@pytest.mark.parametrize("name", [command.name for command in registry.COMMANDS])
def test_lanes_of_commands_are_as_promised(name: str) -> None:
    found = registry.parse(f"/{name} x")
    assert found
    assert found[0].kind is (TurnKind.CONTROL if name in CONTROL else TurnKind.COMMAND)
    assert found[0].stops_turn == (name in STOPPING)
