"""What the line takes of discord.py that the library does not promise; why its version has an upper bound."""

import importlib
import inspect
import tomllib
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

PROJECT = Path(__file__).parents[3] / "pyproject.toml"
LIBRARY = f"discord.py {version('discord.py')}"
FUNCTIONS = [
    ("discord.client", "Client._get_state", {"options"}),
    ("discord.client", "Client._async_setup_hook", set()),
    (
        "discord.gateway",
        "DiscordWebSocket.from_client",
        {"initial", "gateway", "resume", "session", "sequence"},
    ),
    ("discord.gateway", "DiscordWebSocket.poll_event", set()),
    ("discord.gateway", "DiscordWebSocket.close", {"code"}),
    ("discord.http", "HTTPClient.__init__", {"loop"}),
    ("discord.http", "HTTPClient.request", {"route"}),
    ("discord.http", "HTTPClient.static_login", {"token"}),
    ("discord.http", "HTTPClient.close", set()),
    ("discord.gateway", "ReconnectWebSocket.__init__", {"resume"}),
]
"""Functions of the library that `channels/discord/gateway.py` calls or takes the place of, with what they are
given."""
ATTRIBUTES = [
    ("discord.gateway", "DiscordWebSocket.__init__", ("self.session_id", "self.sequence")),
    ("discord.gateway", "DiscordWebSocket.from_client", ("ws.gateway",)),
    ("discord.gateway", "ReconnectWebSocket.__init__", ("self.resume",)),
    ("discord.state", "ConnectionState.__init__", ("self.parsers",)),
    ("discord.http", "HTTPClient.__init__", ("self.token",)),
    ("discord.client", "Client.__init__", ("self.ws", "self.http")),
]
"""Where the library makes what we read or set."""

pytestmark = pytest.mark.filterwarnings("ignore:'audioop' is deprecated")


def found(module: str, name: str) -> Any:
    thing: Any = importlib.import_module(module)
    for part in name.split("."):
        thing = getattr(thing, part, None)
        assert thing is not None, f"{LIBRARY} has no {module}.{name}: channels/discord/gateway.py uses it"
    return thing


@pytest.mark.parametrize(("module", "name", "given"), FUNCTIONS)
def test_library_still_has_the_functions_that_we_use(module: str, name: str, given: set[str]) -> None:
    missing = given - set(inspect.signature(found(module, name)).parameters)
    assert not missing, f"{LIBRARY}: {name} takes no {missing}; channels/discord/gateway.py gives it"


@pytest.mark.parametrize(("module", "name", "kept"), ATTRIBUTES)
def test_library_still_keeps_what_we_read(module: str, name: str, kept: tuple[str, ...]) -> None:
    source = inspect.getsource(found(module, name))
    for each in kept:
        assert each in source, f"{LIBRARY}: {name} does not set `{each}`, which we use"


def test_library_still_builds_addresses_as_we_take_them_apart() -> None:
    route = found("discord.http", "Route")("GET", "/users/@me")
    assert (route.method, route.url) == ("GET", f"{type(route).BASE}/users/@me")


def test_no_later_library_is_installed_before_somebody_has_looked() -> None:
    extras = tomllib.loads(PROJECT.read_text())["project"]["optional-dependencies"]
    assert extras["discord"] == ["discord.py>=2.7.1,<2.8"]
    assert version("discord.py").startswith("2.7."), "look what the tests above say, then raise the bound"
