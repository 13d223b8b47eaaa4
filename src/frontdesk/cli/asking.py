"""Asking the office: the running gateway's, or one of our own over the store."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

import click

from frontdesk import config
from frontdesk.app.office import Office
from frontdesk.app.reach import reach
from frontdesk.config import Config

T = TypeVar("T")

JSON = click.option("--json", "as_json", is_flag=True, help="Write JSON.")


def ask(config_file: Path | None, question: Callable[[Office], Awaitable[T]]) -> T:
    """The answer to a question; errors are as the office raises them."""
    return asyncio.run(_ask(config.load(config_file), question))


async def _ask(loaded: Config, question: Callable[[Office], Awaitable[T]]) -> T:
    async with reach(loaded) as office:
        return await question(office)


def limit_option(default: int) -> Callable[[Callable[..., None]], Callable[..., None]]:
    return click.option(
        "--limit",
        default=default,
        show_default=True,
        type=click.IntRange(1, 100_000),
        help="How many at most.",
    )
