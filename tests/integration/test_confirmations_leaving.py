"""Programs that wait for a decision, and leave before there is one."""

import asyncio

import httpx

from tests.integration.confirming import ANN, opened, until_waiting
from tests.patience import PATIENCE_SECONDS

LEAVING, STAYING = 20, 3
WAIT = {"prefer": "wait=50"}


async def test_nothing_waits_for_those_who_left_and_others_are_answered() -> None:
    async with opened() as desk:
        asked = await desk.ask()
        path = f"/confirm/{asked['id']}"
        limits = httpx.Limits(max_connections=LEAVING + STAYING)
        async with httpx.AsyncClient(
            base_url=desk.http.base_url, limits=limits, timeout=PATIENCE_SECONDS, trust_env=False
        ) as http:
            polls = [asyncio.create_task(http.get(path, headers=WAIT)) for _ in range(LEAVING + STAYING)]
            await until_waiting(desk, LEAVING + STAYING)
            for poll in polls[STAYING:]:
                poll.cancel()
            await until_waiting(desk, STAYING)
            assert (await desk.http.post(asked["approve_url"], headers=ANN)).status_code == 200
            answers = await asyncio.gather(*polls[:STAYING])
        assert [answer.json()["status"] for answer in answers] == ["approved"] * STAYING
        assert desk.app.streams.waiting == 0


async def test_one_that_sends_a_body_along_waits_as_well() -> None:
    async with opened() as desk:
        asked = await desk.ask()
        path = f"/confirm/{asked['id']}"
        poll = asyncio.create_task(desk.http.request("GET", path, headers=WAIT, content=b"x" * 100_000))
        await until_waiting(desk, 1)
        assert (await desk.http.post(asked["deny_url"], headers=ANN)).status_code == 200
        assert (await poll).json()["status"] == "denied"
