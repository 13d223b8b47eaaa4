"""What is added takes the places that the design page names, and no other: tried on a copy of the source."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.architecture import source

FACTS = """
from frontdesk.model.platforms import PlatformFacts

FACTS = PlatformFacts(notes=lambda context: f"{context.source.chat_id} shows digits alone.")
"""
CHANNEL = """
import asyncio

import msgspec

from frontdesk.contracts.channels import Capabilities, Incoming
from frontdesk.model.deliveries import Sent
from frontdesk.model.platforms import Platform
from frontdesk.model.sources import SessionSource

ARRIVED = asyncio.Event()


class Options(msgspec.Struct, frozen=True, kw_only=True):
    number: str


class Channel:
    Options = Options
    name = Platform.register("pager")
    capabilities = Capabilities(authenticates=True)
    routes = ()

    def __init__(self, options, account=None):
        self.options, self.account = options, account

    async def receive(self, desk):
        source = SessionSource(platform=self.name, chat_id=self.options.number, user_id="7")
        await desk.accept(Incoming(source=source, text="!show system", event_id="e1"))
        await asyncio.Event().wait()

    async def send(self, delivery):
        print(delivery.text, flush=True)
        ARRIVED.set()
        return Sent()

    async def close(self):
        pass
"""
SCRIPT = """
import asyncio, pathlib, sys
from frontdesk import config
from frontdesk.app.build import open_gateway


async def main():
    file = pathlib.Path(sys.argv[1])
    file.write_text('''
[agent]
driver = "scripted"
[confirm]
enabled = false
[store]
url = "sqlite:///:memory:"
[channels.pager]
number = "12345"
''')
    async with open_gateway(config.load(file, {"HOME": str(file.parent)})) as gateway, gateway.started():
        from frontdesk.channels.pager.channel import ARRIVED

        await asyncio.wait_for(ARRIVED.wait(), 30)


asyncio.run(main())
"""


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A copy of the source and of what says which parts there are."""
    shutil.copytree(
        source.SOURCE, tmp_path / "src" / "frontdesk", ignore=shutil.ignore_patterns("__pycache__")
    )
    return tmp_path / "src"


def insert(file: Path, before: str, added: str) -> None:
    text = file.read_text(encoding="utf-8")
    assert text.count(before) == 1
    file.write_text(text.replace(before, f"{added}{before}"), encoding="utf-8")


def install(folder: Path, **added: dict[str, str]) -> None:
    """Write what an installation makes of the project's entry points and of the added ones."""
    points = source.PROJECT["project"]["entry-points"]
    groups = {group: {**named, **added.get(group.partition(".")[2], {})} for group, named in points.items()}
    lines = [
        f"[{group}]\n" + "".join(f"{name} = {at}\n" for name, at in named.items())
        for group, named in groups.items()
    ]
    facts = folder / "frontdesk-0.1.0.dist-info"
    facts.mkdir()
    (facts / "METADATA").write_text("Metadata-Version: 2.1\nName: frontdesk\nVersion: 0.1.0\n")
    (facts / "entry_points.txt").write_text("\n".join(lines))


def run(folder: Path, script: str, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", script, *arguments],
        env={"PYTHONPATH": str(folder), "HOME": str(folder)},
        capture_output=True,
        check=False,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_platform_is_its_folder_and_its_entry_point(copy: Path) -> None:
    folder = copy / "frontdesk" / "channels" / "pager"
    folder.mkdir()
    (folder / "__init__.py").touch()
    (folder / "facts.py").write_text(FACTS)
    (folder / "channel.py").write_text(CHANNEL)
    install(copy, channels={"pager": "frontdesk.channels.pager.channel:Channel"})
    told = run(copy, SCRIPT, str(copy / "frontdesk.toml"))
    assert "**Source:** pager, DM with" in told
    assert "**Platform notes:** 12345 shows digits alone." in told


ENDPOINT = '''
@OPERATIONS.add("GET", "/confirm/{id}/votes", records.Votes, who=Who.APPROVER)
async def count_votes(api: ConfirmationApi, call: HttpCall) -> records.Votes:
    """How many have said yes so far."""
    return records.Votes(count=len((await api.seen(call)).approvals))


'''
RECORD = """class Votes(msgspec.Struct, frozen=True, kw_only=True):
    count: int


"""
VOTES = """
import json, sys, urllib.request

from frontdesk import ConfirmationServer
from frontdesk.confirm import SyncClient

server = ConfirmationServer(port=0, db_path=":memory:", home=sys.argv[1])
url = server.start_background()
ticket = SyncClient(url).request("deploy", "Deploy it")


def fetch(path):
    headers = {"authorization": f"Bearer {server.keys.token()}"}
    return json.load(urllib.request.urlopen(urllib.request.Request(url + path, headers=headers)))


told = fetch("/openapi.json")["paths"]["/confirm/{id}/votes"]["get"]
print(fetch(f"/confirm/{ticket.id}/votes"), told["operationId"], told["summary"], told["security"])
try:
    urllib.request.urlopen(f"{url}/confirm/{ticket.id}/votes")
except urllib.error.HTTPError as refused:
    print(refused.code)
server.stop()
"""


def test_endpoint_is_its_function_with_its_row_and_its_record(copy: Path) -> None:
    served = copy / "frontdesk" / "web" / "confirmations"
    insert(served / "api.py", '@OPERATIONS.add("GET", "/health"', ENDPOINT.lstrip())
    insert(served / "records.py", "class Health(", RECORD)
    install(copy)
    said = run(copy, VOTES, str(copy / "home"))
    assert said == "{'count': 0} count_votes How many have said yes so far [{'approver': []}]\n401\n"


QUESTION = '''    async def count_sessions(self, at_most: int = 1000) -> int:
        """How many sessions there are."""
        return await self._store.sessions.count(at_most)

'''
ASKED = """
import asyncio, pathlib, sys

from frontdesk import SessionStore, config
from frontdesk.agents import scripted
from frontdesk.app import sockets
from frontdesk.app.gateway import Gateway
from frontdesk.cli.asking import reach_gateway, reach_office
from frontdesk.web import server


async def main():
    home = pathlib.Path(sys.argv[1])
    loaded = config.load(None, {"HOME": str(home), "FRONTDESK_HOME": str(home)})
    async with reach_office(loaded) as near:
        print(type(near).__name__, await near.count_sessions())
    async with await SessionStore.open("sqlite:///:memory:") as sessions:
        gateway = Gateway(sessions, scripted.Driver(scripted.Options()), [])
        path = sockets.socket_of(home)
        async with gateway.started(), server.serving(gateway, port=0, socket=path, grace_seconds=1):
            async with reach_office(loaded) as far:
                print(type(far).__name__, await far.count_sessions(at_most=5))
            told = await (await reach_gateway(home)).call("GET", "/openapi.json")
            print(told["paths"]["/office/count_sessions"]["post"]["summary"])


asyncio.run(main())
"""


def test_question_of_the_owner_is_one_method(copy: Path) -> None:
    insert(copy / "frontdesk" / "app" / "office" / "people.py", "    async def list_people(", QUESTION)
    install(copy)
    said = run(copy, ASKED, str(copy / "home"))
    assert said == "Office 0\nFarOffice 0\nHow many sessions there are\n"


LIMIT = """    Limit(
        reason=EndReason.CACHE_LIMIT,
        setting="max_cache_tokens",
        counter="cache_read_tokens",
        most=1_000,
        turn=lambda _: 0,
        name="cache",
        shown=str,
        used="{used} of at most {limit} tokens were read from the cache, {left} left.",
        help="How many tokens a session may read from the cache.",
    ),
"""
LIMITED = """
from datetime import UTC, datetime
from msgspec.structs import replace
from frontdesk import SessionEntry, SessionResetPolicy, reset_notice
from frontdesk.config.table import SETTINGS
from frontdesk.flow.limits import rotation_reason, turn_warnings

now = datetime(2026, 5, 5, tzinfo=UTC)
entry = SessionEntry(session_key="k", session_id="s", created_at=now, updated_at=now, cache_read_tokens=9)
policy = SessionResetPolicy(max_cache_tokens=10)
print("session_reset.max_cache_tokens" in {each.name for each in SETTINGS})
print(turn_warnings(entry, policy, now=now))
reason = rotation_reason(replace(entry, cache_read_tokens=10), policy, now=now)
fresh = replace(entry, was_auto_reset=True, auto_reset_reason=reason, reset_had_activity=True)
print(reset_notice(fresh, policy))
"""
SPENDING = """
import asyncio
from frontdesk import GatewayConfig, ResetMode, SessionResetPolicy, Usage
from frontdesk.contracts.agents import Abilities
from frontdesk.model import events
from tests.flow.harness import open_house


class Agent:
    abilities = Abilities()

    async def run(self, turn, line):
        yield events.Text(text="ok")
        yield events.Used(usage=Usage(cache_read_tokens=60))
        yield events.Done()

    async def release(self, session_id):
        pass

    async def close(self):
        pass


async def main():
    limits = {"mode": ResetMode.NONE, "max_messages": 0, "max_cache_tokens": 100}
    policy = SessionResetPolicy.from_dict(limits)
    config = GatewayConfig(default_reset_policy=policy)
    async with open_house("sqlite:///:memory:", config=config, agent=Agent()) as house:
        await house.ask("one")
        first = await house.store.sessions.current(await house.key())
        await house.ask("two")
        await house.ask(f"/resume {first.id}")
        print(await house.ask("/usage"))
        await house.ask("three")
        print((await house.store.sessions.current(await house.key())).id == first.id)


asyncio.run(main())
"""


def test_kind_of_limit_is_a_reason_a_field_and_a_row(copy: Path) -> None:
    policies = copy / "frontdesk" / "model" / "policies.py"
    insert(policies, '    SPIRAL = "spiral"\n', '    CACHE_LIMIT = "cache_limit"\n')
    insert(policies, "    spiral_repeats: int = 5\n", "    max_cache_tokens: int = 0\n")
    insert(policies, ')\n"""In the order in which they are checked."""\n', LIMIT)
    told = run(copy, LIMITED)
    assert told.startswith(
        "True\n**Session limit:** 9 of at most 10 tokens were read from the cache, 1 left."
    )
    assert "New session: reached 10 cache limit." in told
    spent = run(copy, SPENDING)
    assert "0 of at most 100 tokens were read from the cache, 100 left." in spent
    assert spent.endswith("True\n")
