"""Parts of other packages: installed, named in the file, and used by the program."""

import contextlib
import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance import program
from tests.acceptance.test_run import request

MODULE = """
import asyncio
import json

import msgspec

from frontdesk import Platform, SessionSource
from frontdesk.contracts.channels import Capabilities, Incoming, Response, Route
from frontdesk.model import deliveries, events
from frontdesk.stores.sqlite import open_store as open_sqlite

PIGEON = Platform.register("pigeon-post")


class Options(msgspec.Struct, frozen=True, kw_only=True):
    perch: str = "roof"


class Channel:
    Options = Options
    name = PIGEON
    capabilities = Capabilities(authenticates=True)

    def __init__(self, options, account=None):
        self.options, self.account, self.desk = options, account, None

    @property
    def routes(self):
        where = f"/channels/pigeon/{self.account or self.options.perch}"
        return [Route(method="POST", path=where, handle=self.take)]

    async def receive(self, desk):
        self.desk = desk
        await asyncio.Event().wait()

    async def take(self, request):
        source = SessionSource(platform=PIGEON, account=self.account, chat_id="1", user_id="1")
        receipt = await self.desk.accept(Incoming(source=source, text=request.body.decode(), event_id="e1"))
        return Response(status=202, body=receipt.session_key.encode())

    async def send(self, delivery):
        print(f"ARRIVED {delivery.text}", flush=True)
        return deliveries.Sent()

    async def close(self):
        pass


class AgentOptions(msgspec.Struct, frozen=True, kw_only=True):
    word: str


class Driver:
    Options = AgentOptions

    def __init__(self, options):
        self.options = options

    async def run(self, context, line):
        yield events.Text(text=f"{self.options.word}!")
        yield events.Done()

    async def release(self, session_id):
        pass

    async def close(self):
        pass


async def open_store(url, **options):
    return await open_sqlite(url.replace("pigeonhole", "sqlite"), **options)
"""
POINTS = """
[frontdesk.channels]
pigeon-post = pigeons:Channel
broken-post = no_such_module_of_ours:Channel
[frontdesk.agents]
pigeon = pigeons:Driver
[frontdesk.stores]
pigeonhole = pigeons:open_store
"""
FILE = """
[agent]
driver = "pigeon"
word = "coo"

[server]
port = 0

[confirm]
enabled = false

[store]
url = "pigeonhole:///{home}/letters.db"

[channels.pigeon-post]
{options}

[session_reset.by_platform.pigeon-post]
max_messages = 7
"""


@pytest.fixture
def packages(tmp_path: Path) -> Path:
    """A folder of installed packages with one of somebody else's."""
    folder = tmp_path / "site-packages"
    facts = folder / "pigeons-1.0.dist-info"
    facts.mkdir(parents=True)
    (folder / "pigeons.py").write_text(MODULE)
    (facts / "METADATA").write_text("Metadata-Version: 2.1\nName: pigeons\nVersion: 1.0\n")
    (facts / "entry_points.txt").write_text(POINTS)
    return folder


def configure(home: Path, text: str) -> None:
    folder = home / ".frontdesk"
    folder.mkdir(exist_ok=True)
    (folder / "frontdesk.toml").write_text(text)


def check(home: Path, packages: Path) -> subprocess.CompletedProcess[str]:
    return program.run(home, "config", "check", PYTHONPATH=str(packages))


@contextlib.contextmanager
def running(home: Path, packages: Path) -> Iterator[tuple[subprocess.Popen[bytes], str]]:
    arguments = ("run", "--log-level", "warning")
    with program.start(home, *arguments, PYTHONPATH=str(packages)) as process:
        found = re.search(r"http://[\d.:]+", program.read_until(process, "agent is"))
        assert found
        yield process, found[0]


@contextlib.contextmanager
def answering(home: Path, packages: Path, options: str, where: str) -> Iterator[None]:
    """A gateway of what is configured so, once a message there was answered."""
    configure(home, FILE.format(home=home, options=options))
    checked = check(home, packages)
    assert checked.returncode == 0, checked.stderr
    with running(home, packages) as (process, url):
        status, key = request(url, "POST", f"/channels/pigeon/{where}", b"hello")
        assert (status, b"pigeon-post" in key) == (202, True)
        program.read_until(process, "ARRIVED coo!")
        yield


@pytest.mark.parametrize(("options", "where"), [('perch = "tower"', "tower"), ('allow = ["*"]', "roof")])
def test_parts_of_another_package_are_configured(
    tmp_path: Path, packages: Path, options: str, where: str
) -> None:
    with answering(tmp_path, packages, options, where):
        pass


@pytest.mark.parametrize(
    ("options", "where"), [("", "roof"), ('[channels.pigeon-post.cellar]\nperch = "below"', "cellar")]
)
def test_parts_of_another_package_are_used_and_told_of_by_commands(
    tmp_path: Path, packages: Path, options: str, where: str
) -> None:
    with answering(tmp_path, packages, options, where):
        told = program.run(tmp_path, "status", "--json", PYTHONPATH=str(packages))
        assert "pigeon-post" in {each["platform"] for each in json.loads(told.stdout)["channels"]}
        asked = ("explain", "--platform", "pigeon-post", "--chat-id", "1", "--user-id", "1")
        explained = program.run(tmp_path, *asked, PYTHONPATH=str(packages))
        assert "agent:main:pigeon-post:dm:1" in explained.stdout, explained.stderr
    listed = program.run(tmp_path, "sessions", "list", "--json", PYTHONPATH=str(packages))
    assert "pigeon-post" in {each["platform"] for each in json.loads(listed.stdout)}


def test_what_is_no_option_of_a_packages_channel_is_an_error(tmp_path: Path, packages: Path) -> None:
    configure(tmp_path, FILE.format(home=tmp_path, options='perhc = "roof"'))
    refused = check(tmp_path, packages)
    assert refused.returncode == 1
    assert "channels.pigeon-post.perhc" in refused.stderr
    assert "Did you mean channels.pigeon-post.perch?" in refused.stderr


def test_platform_that_nothing_brings_stays_an_error(tmp_path: Path, packages: Path) -> None:
    configure(tmp_path, "[channels.pigeon-pots]\nperch = 'roof'\n")
    refused = check(tmp_path, packages)
    assert refused.returncode == 1
    assert "channels.pigeon-pots" in refused.stderr
    assert "pigeon-post" in refused.stderr


def test_package_that_cannot_be_loaded_is_named(tmp_path: Path, packages: Path) -> None:
    configure(tmp_path, '[agent]\ndriver = "scripted"\n[channels.broken-post]\n')
    refused = check(tmp_path, packages)
    assert refused.returncode == 1
    assert refused.stderr.count("\n") == 1
    assert "pigeons" in refused.stderr
    assert "no_such_module_of_ours" in refused.stderr
