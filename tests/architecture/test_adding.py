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
    name = Platform.PAGER
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
from frontdesk import Platform, config
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
    print(Platform("pager") is Platform.PAGER, flush=True)
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


def test_platform_is_its_folder_its_name_and_its_entry_point(copy: Path) -> None:
    folder = copy / "frontdesk" / "channels" / "pager"
    folder.mkdir()
    (folder / "__init__.py").touch()
    (folder / "facts.py").write_text(FACTS)
    (folder / "channel.py").write_text(CHANNEL)
    insert(copy / "frontdesk" / "model" / "platforms.py", '    "web",\n', '    "pager",\n')
    install(copy, channels={"pager": "frontdesk.channels.pager.channel:Channel"})
    told = run(copy, SCRIPT, str(copy / "frontdesk.toml"))
    assert told.startswith("True\n")
    assert "**Source:** pager, DM with" in told
    assert "**Platform notes:** 12345 shows digits alone." in told
