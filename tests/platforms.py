"""``python -m tests.platforms > docs/platforms.md``: what each platform can do, as its channel says, and what
of that the contract suite tries."""

import importlib
import math
import re
import sys
import tempfile
import tomllib
import typing
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import tomlkit

from frontdesk import config, plugins
from frontdesk.app import build
from frontdesk.contracts.channels import Capabilities, Channel, Seeking, Signing
from frontdesk.model.chats import TextUnit
from frontdesk.testing.channels import (
    Act,
    ChannelContract,
    CollectingContract,
    EditingContract,
    SendingContract,
)
from frontdesk.testing.conversing import PeopleContract
from tests.docs import pages

ROOT = Path(__file__).parents[1]
MIB = 1024 * 1024
YES, NO, UNTRIED = "yes", "–", "not tried"
UNITS = {TextUnit.CHARACTERS: "characters", TextUnit.UTF16: "UTF-16 units", TextUnit.BYTES: "bytes"}
HEAD = """# Platforms

What each platform can do here, made by `python -m tests.platforms > docs/platforms.md` from what the channels
say of themselves, with the settings that their pages show, and from the tests that they are held to.

## What they can do

In a direct chat; groups may differ. Where a message has neither buttons nor reactions, people decide with a
[command](commands.md) and choose by number.

"""
HEAD_OF_SUITE = """
## What the contract suite tries

Every channel passes [the suite](channels.md#the-contract-suite) as far as it applies: repeats, what cannot be
stored, forged fields, accounts, chats, and where it sends, long texts and trouble. Of what differs:

"""
FOOT = f"""
`{NO}` means that there is no such thing there, `{UNTRIED}` that the suite does not try it. Platforms of
[other packages](channels.md) are not listed.
"""


class Known(NamedTuple):
    """A platform with a channel, its page, and the class of tests that holds it to the contract."""

    name: str
    page: Path
    channel: Channel
    suite: type[ChannelContract]  # type: ignore[type-arg]

    @property
    def can(self) -> Capabilities:
        return self.channel.capabilities


def known() -> Iterator[Known]:
    for name in plugins.installed("channel"):
        is_ours = plugins.load_part("channel", name).__module__.startswith("frontdesk.")
        if is_ours and name not in build.ALWAYS_THERE:
            page, table = _example(name)
            yield Known(name, page, _made(name, table), _suite(name))


def _example(platform: str) -> tuple[Path, object]:
    """The page of a platform, and the settings that it shows first."""
    found = [
        (page, table)
        for page in pages.all_pages()
        for block in pages.blocks(page, "toml")
        if (table := tomllib.loads(block.text).get("channels", {}).get(platform)) is not None
    ]
    own = [each for each in found if platform.startswith(each[0].stem)]
    if not own:
        sys.exit(f"No page that is called like {platform} shows [channels.{platform}].")
    return own[0]


def _made(platform: str, table: object) -> Channel:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "frontdesk.toml"
        file.write_text(tomlkit.dumps({"channels": {platform: table}}))
        environ = {"HOME": folder, "FRONTDESK_HOME": folder}
        return build.make_channels(config.load(file, environ))[0]


def _suite(platform: str) -> type[ChannelContract]:  # type: ignore[type-arg]
    """The tests called after the platform, wherever they are."""
    name = "Test" + "".join(map(str.capitalize, platform.split("_")))
    declared = re.compile(rf"^class {name}\(", re.MULTILINE)
    for file in sorted((ROOT / "tests").rglob("test_*.py")):
        if declared.search(file.read_text(encoding="utf-8")):
            module = ".".join(file.relative_to(ROOT).with_suffix("").parts)
            suite: type = getattr(importlib.import_module(module), name)
            if issubclass(suite, ChannelContract):
                return suite
    sys.exit(f"No class {name} of the tests holds {platform} to the contract.")


def _text(each: Known) -> str:
    can = each.can
    return f"{can.text_limit:,} {UNITS[can.text_unit]}" if can.text_limit else "any length"


def _files(each: Known) -> str:
    can = each.can
    if not can.most_files:
        return NO
    size = f", {can.most_file_bytes / MIB:.0f} MiB each" if can.most_file_bytes else ""
    return f"{can.most_files}{size}"


def _unclear(each: Known) -> str:
    """What becomes of an answer of which nobody knows whether it arrived."""
    can = each.can
    if can.collects:
        return "it is collected again"
    if can.idempotent_seconds == math.inf:
        return "it is sent again, and known again"
    looked = "it is looked for" if isinstance(each.channel, Seeking) else "a person decides"
    if can.idempotent_seconds:
        return f"for {_duration(can.idempotent_seconds)} it is sent again, and known again; then {looked}"
    return looked


def _duration(seconds: float) -> str:
    hours = seconds / 3600
    return f"{hours:.0f} hours" if hours >= 1 else f"{seconds / 60:.0f} minutes"


def _yes(holds: Callable[[Capabilities], object]) -> Callable[[Known], str]:
    return lambda each: YES if holds(each.can) else NO


ABILITIES: dict[str, Callable[[Known], str]] = {
    "longest message": _text,
    "an answer grows while it is written": _yes(lambda can: can.edits),
    "buttons under a message": lambda each: str(each.can.most_buttons or NO),
    "reactions": _yes(lambda can: can.reactions),
    "files in one message": _files,
    "it shows that we write": _yes(lambda can: can.typing_seconds),
    "nobody can claim another's id": _yes(lambda can: can.reliable_sender_ids or can.authenticates),
    "an answer that may be lost": _unclear,
}
ACTS = {
    Act.EDIT: "people change a message",
    Act.DELETE: "people delete a message",
    Act.QUOTE: "people answer a message",
    Act.ALBUM: "people send an album",
    Act.FILE: "people send a file",
    Act.PRESS: "people press a button",
    Act.REACT: "people react",
    Act.MENTION: "people write to us by name",
    Act.EXPEL: "people throw us out",
}


def _tried(act: Act) -> Callable[[Known], str]:
    def tell(each: Known) -> str:
        if issubclass(each.suite, PeopleContract):
            return YES if act in each.suite.brings else NO
        return UNTRIED if each.can.reactions or each.can.most_buttons or each.can.most_files else NO

    return tell


def _restarted(each: Known) -> str:
    """Whether it is tried that a channel goes on where it was; one that we have nothing to read from need
    not."""
    return YES if hasattr(_bench(each.suite), "restart") else NO


def _bench(suite: type) -> object:
    """The class of benches that a suite opens, as it says itself."""
    for each in suite.__mro__:
        if "open_bench" in vars(each):
            given = typing.get_type_hints(vars(each)["open_bench"])["return"]
            return typing.get_args(given)[0]
    raise AssertionError(suite)


def _shows(kind: type) -> Callable[[Known], str]:
    return lambda each: (
        YES if isinstance(each.channel, kind) and issubclass(each.suite, PeopleContract) else NO
    )


SUITE: dict[str, Callable[[Known], str]] = {
    "answers are sent": lambda each: NO if issubclass(each.suite, CollectingContract) else YES,
    "answers are collected": lambda each: YES if issubclass(each.suite, CollectingContract) else NO,
    "an answer grows": lambda each: (
        YES if issubclass(each.suite, EditingContract) else UNTRIED if each.can.edits else NO
    ),
    "what came while we were away is read, once": _restarted,
    "an answer that may be lost is looked for": lambda each: (
        YES if isinstance(each.channel, Seeking) and issubclass(each.suite, SendingContract) else NO
    ),
    "signs": lambda each: (
        YES if isinstance(each.channel, Signing) and issubclass(each.suite, PeopleContract) else NO
    ),
    "our own files": lambda each: (
        (YES if issubclass(each.suite, PeopleContract) else UNTRIED) if each.can.most_files else NO
    ),
    **{what: _tried(act) for act, what in ACTS.items()},
}


def render() -> str:
    platforms = list(known())
    return HEAD + _table(platforms, ABILITIES) + HEAD_OF_SUITE + _table(platforms, SUITE) + FOOT


def _table(platforms: list[Known], rows: dict[str, Callable[[Known], str]]) -> str:
    names = [f"[{each.name}]({each.page.name})" for each in platforms]
    lines = [["", *names], ["---"] * (len(names) + 1)]
    lines += [[what, *map(tell, platforms)] for what, tell in rows.items()]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines).replace("|  |", "| |")


if __name__ == "__main__":
    print(render(), end="")
