"""What commands write: never a control character that would reach the terminal."""

import re
from typing import Any

import click
import msgspec

_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def show(text: str) -> None:
    click.echo(printable(text))


def printable(text: str) -> str:
    """The text with U+FFFD for what would command a terminal or turn its writing around."""
    return _CONTROLS.sub("\ufffd", text)


def show_json(data: Any) -> None:
    click.echo(msgspec.json.format(msgspec.json.encode(data), indent=2))
