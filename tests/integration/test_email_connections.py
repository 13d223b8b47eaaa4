"""Connections to a mailbox that break, hang, or lead to another mailbox than before: nothing is lost."""

import asyncio
import re
from collections.abc import AsyncIterator
from functools import partial
from typing import Any

import msgspec
import pytest

from frontdesk.channels.email.mailbox import Mailbox
from frontdesk.channels.email.shared import SharedMailbox
from frontdesk.model import deliveries
from frontdesk.model.chats import Cursor
from frontdesk.testing import channels
from tests.integration.imap_relay import ImapRelay, relayed
from tests.integration.test_email_channel import EmailBench, mail, opened, until
from tests.peers.mail import PostOffice

LOOKED_FOR = 30
VALIDITY = re.compile(rb"UIDVALIDITY \d+")


@pytest.fixture(name="relay")
async def fixture_relay(post_office: PostOffice) -> AsyncIterator[ImapRelay]:
    async with relayed(post_office.imap_port) as relay:
        yield relay


def patient(office: PostOffice, desk: channels.RecordingDesk, relay: ImapRelay, **more: Any) -> EmailBench:
    """One that no slow machine makes hang up."""
    return EmailBench(office, desk, None, imap_port=relay.port, **more)


def numbered(number: int) -> bytes:
    return mail(f"mail {number}", Message_ID=f"<{number}@a.test>")


def texts(desk: channels.RecordingDesk) -> list[str]:
    return [each.text for each in desk.stored]


async def test_many_answers_are_looked_for_over_one_connection(
    post_office: PostOffice, relay: ImapRelay
) -> None:
    desk, sent = channels.RecordingDesk(), post_office.new_folder()
    async with opened(post_office, desk, sent_folder=sent) as bench:
        assert await bench.bring(mail())
        (answer,) = await desk.answers("turn-1")
    several = [msgspec.structs.replace(answer, id=f"d_{number}") for number in range(LOOKED_FOR)]
    seeking = patient(post_office, desk, relay, sent_folder=sent)
    try:
        for each in several[::3]:
            assert isinstance(await seeking.channel.send(each), deliveries.Sent)
        for taken in post_office.taken():
            post_office.bring(sent, taken.as_bytes())
        for _ in range(2):
            found = await asyncio.gather(*map(seeking.channel.find, several))
            assert [isinstance(each, deliveries.Sent) for each in found] == [
                number % 3 == 0 for number in range(LOOKED_FOR)
            ]
            assert all(isinstance(each, deliveries.Sent | deliveries.NotSent) for each in found)
        assert relay.connections == 1
        relay.cut()
        assert isinstance(await seeking.channel.find(several[0]), deliveries.Sent)
        assert isinstance(await seeking.channel.find(several[1]), deliveries.NotSent)
        assert relay.connections == 2
    finally:
        await seeking.channel.close()
    await until(lambda: relay.open == 0)


async def test_who_gives_up_looking_keeps_nobody_else_from_it(
    post_office: PostOffice, relay: ImapRelay
) -> None:
    desk, sent = channels.RecordingDesk(), post_office.new_folder()
    async with opened(post_office, desk) as bench:
        assert await bench.bring(mail())
        (answer,) = await desk.answers("turn-1")
    seeking = patient(post_office, desk, relay, sent_folder=sent)
    first = asyncio.create_task(seeking.channel.find(answer))
    others = [asyncio.create_task(seeking.channel.find(answer)) for _ in range(3)]
    await until(lambda: relay.connections == 1)
    first.cancel()
    assert [type(each) for each in await asyncio.gather(*others)] == [deliveries.NotSent] * 3
    await seeking.channel.close()


async def test_connection_that_nobody_needs_is_closed(post_office: PostOffice, relay: ImapRelay) -> None:
    bench = patient(post_office, channels.RecordingDesk(), relay)
    opening = partial(asyncio.to_thread, Mailbox, bench.channel._options)
    shared = SharedMailbox(opening, Mailbox.cut, asyncio.to_thread, rest_seconds=0.01)
    for connections in (1, 2):
        assert await shared.ask(lambda box: box.having(["<x@a.test>"])) == set()
        await until(lambda: relay.open == 0)
        assert relay.connections == connections
    await bench.channel.close()


async def test_connection_that_dies_silently_is_noticed(post_office: PostOffice, relay: ImapRelay) -> None:
    desk = channels.RecordingDesk()
    async with opened(post_office, desk, imap_port=relay.port, timeout_seconds=3.0) as bench:
        assert await bench.bring(numbered(1))
        relay.fall_silent()
        assert await bench.bring(numbered(2))
        assert await bench.bring(numbered(3))
    assert texts(desk) == ["mail 1", "mail 2", "mail 3"]


@pytest.mark.parametrize("end", [ImapRelay.say_bye, ImapRelay.cut])
async def test_server_that_hangs_up_is_called_again(
    post_office: PostOffice, relay: ImapRelay, end: Any
) -> None:
    desk = channels.RecordingDesk()
    async with opened(post_office, desk, imap_port=relay.port) as bench:
        for number in range(1, 4):
            assert await bench.bring(numbered(number))
            end(relay)
    assert texts(desk) == ["mail 1", "mail 2", "mail 3"]


async def test_mails_that_get_new_numbers_under_our_eyes_are_known_again(
    post_office: PostOffice, relay: ImapRelay
) -> None:
    desk = channels.RecordingDesk()
    async with opened(post_office, desk, imap_port=relay.port) as bench:
        assert await bench.bring(numbered(1))
        relay.rewrite = partial(VALIDITY.sub, b"UIDVALIDITY 7")
        await until(lambda: desk.read_until[""].startswith("7:"))
        assert await bench.bring(numbered(2))
    assert texts(desk) == ["mail 1", "mail 2"]


@pytest.mark.parametrize("admits", [True, False])
async def test_mailbox_that_was_made_anew_is_read_from_its_beginning(
    post_office: PostOffice, relay: ImapRelay, admits: bool
) -> None:
    """Whether or not the server says that its numbers mean others now."""
    if not admits:
        relay.rewrite = partial(VALIDITY.sub, b"UIDVALIDITY 7")
    desk = channels.RecordingDesk()
    async with opened(post_office, desk, imap_port=relay.port) as bench:
        for number in range(1, 4):
            assert await bench.bring(numbered(number))
        with post_office.mailbox() as box:
            box.folder.delete(bench.folder)
            await until(lambda: bench.channel.trouble() is not None)
            box.folder.create(bench.folder)
        for number in (3, 4):
            await asyncio.to_thread(post_office.bring, bench.folder, numbered(number))
        await until(lambda: len(desk.stored) > 3)
        await until(lambda: bench.channel.trouble() is None)
    assert texts(desk) == [f"mail {number}" for number in range(1, 5)]


async def test_mail_that_cannot_be_had_now_is_not_taken_for_gone(
    post_office: PostOffice, relay: ImapRelay
) -> None:
    desk = channels.RecordingDesk()
    async with opened(post_office, desk, imap_port=relay.port) as bench:
        relay.refuses_mail = True
        await asyncio.to_thread(post_office.bring, bench.folder, numbered(1))
        await until(lambda: relay.refused > 1)
        assert bench.channel.trouble() is not None
        relay.refuses_mail = False
        assert await bench.bring(numbered(2))
        assert bench.channel.trouble() is None
    assert texts(desk) == ["mail 1", "mail 2"]


async def test_of_a_mail_that_is_too_long_the_beginning_is_read(post_office: PostOffice) -> None:
    desk = channels.RecordingDesk()
    async with opened(post_office, desk, max_mail_bytes=100_000) as bench:
        large = channels.PlatformFile(name="a.bin", kind="application/zip", data=b"x" * 2_000_000)
        assert await bench.bring(mail("look", files=(large,)))
        assert await bench.bring(numbered(2))
    assert texts(desk) == [
        "look\n\n[The mail is longer than 100000 bytes: its end was not read.]",
        "mail 2",
    ]
    assert [each.files for each in desk.stored] == [(), ()]


async def test_cursor_that_means_nothing_here_begins_with_what_is_new(post_office: PostOffice) -> None:
    desk, folder = channels.RecordingDesk(), post_office.new_folder()
    post_office.bring(folder, numbered(0))
    await desk.move_cursor(Cursor(value="what another version wrote"))
    bench = EmailBench(post_office, desk, None, folder=folder)
    receiving = asyncio.create_task(bench.channel.receive(desk))
    await until(lambda: desk.read_until[""].count(":") == 2)
    assert await bench.bring(numbered(1))
    receiving.cancel()
    await asyncio.wait({receiving})
    await bench.channel.close()
    assert texts(desk) == ["mail 1"]
