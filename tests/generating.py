"""Requests that schemathesis makes from the description of an API."""

import asyncio
import re
import sys
from pathlib import Path

import httpx

from tests.counts import count

SEED = 4
MOST_EXAMPLES = count(1, 300)


async def run_schemathesis(client: httpx.AsyncClient, settings: Path, *more: str) -> str:
    """What it says of what is described there; it must find nothing."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "schemathesis.cli", "--config-file", str(settings)),
        *("run", str(client.base_url.join("/openapi.json"))),
        *("--checks", "all", "--max-examples", str(MOST_EXAMPLES), "--generation-database", "none"),
        *("--seed", str(SEED), "--no-color", "--suppress-health-check", "all", "--warnings", "off"),
        *more,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        cwd=settings.parent,
    )
    output, _ = await process.communicate()
    told = output.decode()
    assert process.returncode == 0, told
    return told


def count_operations(told: str) -> int:
    """How many it has tried."""
    (tested,) = re.findall(r"Tested: (\d+)", told)
    return int(tested)


def count_requests(told: str) -> int:
    """How many it has made."""
    (generated,) = re.findall(r"([\d,]+) generated", told)
    return int(generated.replace(",", ""))
