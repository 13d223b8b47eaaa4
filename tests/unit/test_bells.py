"""Bells, rung by whoever has written, for whoever listens."""

import asyncio
import threading

from frontdesk.contracts.bells import Bells, Topic


def test_bell_wakes_a_listener_on_another_event_loop() -> None:
    """At once, and not when its time is over."""
    bells, hung = Bells(), threading.Event()
    heard: list[bool] = []

    async def listen() -> None:
        asyncio.get_running_loop().set_debug(True)  # else what is not safe goes unnoticed
        bell = bells.listen(Topic.FEED)
        asyncio.get_running_loop().call_soon(hung.set)
        heard.append(await bell.wait(3600.0))

    async def ring() -> None:
        bells.ring(Topic.FEED)

    listening = threading.Thread(target=asyncio.run, args=(listen(),))
    listening.start()
    hung.wait()
    asyncio.run(ring())
    listening.join()
    assert heard == [True]


async def test_bell_that_was_rung_before_is_heard() -> None:
    bells = Bells()
    bell = bells.listen(Topic.FEED)
    bells.ring(Topic.FEED)
    assert await bell.wait(0)
    assert not await bell.wait(0)


def test_bell_of_an_event_loop_that_has_ended_is_rung_for_nobody() -> None:
    bells = Bells()

    async def listen() -> None:
        assert not await bells.listen(Topic.FEED).wait(0)

    asyncio.run(listen())
    bells.ring(Topic.FEED)
