"""The e-mail channel against real servers of mail."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from email.message import EmailMessage
from typing import Any, ClassVar

import msgspec
import pytest

from frontdesk import errors
from frontdesk.channels import email
from frontdesk.channels.email.options import Security
from frontdesk.model import deliveries
from frontdesk.model.chats import Cursor, StoredFile
from frontdesk.model.findings import Severity
from frontdesk.testing import channels
from frontdesk.testing.channels import Act
from frontdesk.testing.conversing import PeopleContract
from tests.contracts.benching import ServedBench, started
from tests.flow.harness import poll
from tests.patience import PATIENCE_SECONDS
from tests.peers.mail import LOGIN, PASSWORD, PostOffice

IDLE_SECONDS = 0.1
"""For most tests: the server takes half a second to tell."""
LATER = (errors.StoreError, errors.TooManyWaiting)
MODES = {
    None: "works",
    channels.Trouble.REFUSES: "refuses",
    channels.Trouble.FAILS: "fails",
    channels.Trouble.HANGS: "hangs",
    channels.Trouble.CUTS: "cuts",
}


def mail(
    text: str = "Hello",
    sender: str = "ann@a.test",
    files: tuple[channels.PlatformFile, ...] = (),
    **headers: str,
) -> bytes:
    made = EmailMessage()
    headers = {"From": sender, "To": LOGIN, "Subject": "A question", "Message_ID": "<1@a.test>"} | headers
    for name, value in headers.items():
        made[name.replace("_", "-")] = value
    made.set_content(text, cte="base64")
    for file in files:
        main, _, sub = file.kind.partition("/")
        made.add_attachment(file.data, maintype=main, subtype=sub, filename=file.name)
    return made.as_bytes()


class EmailBench(ServedBench[email.Channel]):
    def __init__(
        self, office: PostOffice, desk: channels.RecordingDesk, account: str | None, **more: Any
    ) -> None:
        self.office, self.desk = office, desk
        self.folder = more.pop("folder", None) or office.new_folder()
        given = {
            "address": LOGIN,
            "password": lambda: PASSWORD,
            "imap_host": "127.0.0.1",
            "imap_port": office.imap_port,
            "imap_security": Security.NONE,
            "smtp_host": "127.0.0.1",
            "smtp_port": office.smtp_port,
            "smtp_security": Security.NONE,
            "folder": self.folder,
            "idle_seconds": IDLE_SECONDS,
            **more,
        }

        def make(seconds: float) -> email.Channel:
            return email.Channel(email.Options(**({"timeout_seconds": seconds} | given)), account)

        super().__init__(make, desk)

    async def connected(self) -> None:
        await until(lambda: "" in self.desk.read_until)

    async def inject(self, event: channels.PlatformEvent) -> bool:
        if event.act is Act.EXPEL:
            self.office.forget(event.chat_id)
            return True
        return await self.bring(written(event))

    async def happen(self, event: channels.PlatformEvent) -> None:
        await asyncio.to_thread(self.office.bring, self.folder, written(event))

    async def bring(self, raw: bytes) -> bool:
        """Whether the mail counts as read."""
        offered = len(self.desk.offered)
        uid = await asyncio.to_thread(self.office.bring, self.folder, raw)
        async with asyncio.timeout(PATIENCE_SECONDS):
            while self.read_until() < uid:
                if isinstance(self.desk.refusal, LATER) and len(self.desk.offered) > offered:
                    return False
                await asyncio.sleep(0.01)
        return True

    def read_until(self) -> int:
        return int(self.desk.read_until.get("", "0:0:0").split(":")[1])

    async def arrived(self) -> Sequence[channels.Arrival]:
        return [
            channels.Arrival(
                text=each.get_body(("plain",)).get_content().replace("\r\n", "\n").removesuffix("\n"),  # type: ignore[union-attr]
                chat_id=each["To"],
                id=each["Message-ID"],
                about=each["In-Reply-To"],
                files=tuple(map(attached, each.iter_attachments())),
            )
            for each in self.office.taken()
        ]

    async def trouble(self, trouble: channels.Trouble | None) -> None:
        await self.face(trouble)
        self.office.mode(MODES[trouble])


def written(event: channels.PlatformEvent) -> bytes:
    forged = {f"X_{name}": str(value) for name, value in event.forged.items()}
    return mail(event.text, event.chat_id, event.files, Message_ID=f"<{event.id}@a.test>", **forged)


def attached(part: Any) -> channels.PlatformFile:
    data = part.get_payload(decode=True)
    return channels.PlatformFile(name=part.get_filename(), data=data, kind=part.get_content_type())


async def until(holds: Callable[[], bool]) -> None:
    async def look() -> bool | None:
        return holds() or None

    await poll(look)


@asynccontextmanager
async def opened(
    office: PostOffice, desk: channels.RecordingDesk, account: str | None = None, **more: Any
) -> AsyncIterator[EmailBench]:
    office.mode("works")
    office.empty()
    office.forget("nobody")
    async with started(EmailBench(office, desk, account, **more)) as bench:
        yield bench


class CrowdedDesk(channels.RecordingDesk):
    """Has too many messages waiting of one person."""

    crowded = True

    async def accept(self, happening: Any, **more: Any) -> Any:
        if self.crowded and happening.source.chat_id == "ann@a.test":
            raise errors.TooManyWaiting(waiting=9)
        return await super().accept(happening, **more)


async def test_conversation_with_too_many_waiting_holds_up_itself_alone(office: PostOffice) -> None:
    desk = CrowdedDesk()
    async with opened(office, desk) as bench:
        last = 0
        for number, sender in enumerate(("ann@a.test", "bob@b.test", "ann@a.test", "cid@c.test")):
            raw = mail(f"number {number}", sender, Message_ID=f"<{number}@a.test>", References="<0@a.test>")
            last = await asyncio.to_thread(office.bring, bench.folder, raw)
        await until(lambda: len(desk.stored) == 2)
        assert bench.read_until() < last
        desk.crowded = False
        await until(lambda: bench.read_until() == last)
    assert [each.text for each in desk.stored] == [f"number {number}" for number in (1, 3, 0, 2)]


@pytest.fixture(name="office")
def fixture_office(post_office: PostOffice) -> PostOffice:
    return post_office


class TestEmail(PeopleContract):
    brings: ClassVar[frozenset[Act]] = frozenset({Act.FILE, Act.EXPEL})
    chats: ClassVar[tuple[str, str]] = ("ann@a.test", "bob@b.test")
    users: ClassVar[tuple[str, str]] = ("ann@a.test", "bob@b.test")
    office: ClassVar[PostOffice]

    @pytest.fixture(autouse=True)
    def _office(self, office: PostOffice) -> None:
        type(self).office = office

    def open_bench(
        self, desk: channels.RecordingDesk, account: str | None = None
    ) -> AbstractAsyncContextManager[EmailBench]:
        sent = self.office.new_folder()
        self.office.file_into(sent)
        return opened(self.office, desk, account, sent_folder=sent)


async def test_server_tells_of_new_mail(office: PostOffice) -> None:
    desk = channels.RecordingDesk()
    async with opened(office, desk, idle_seconds=2 * PATIENCE_SECONDS) as bench:
        assert await bench.bring(mail("one"))
        assert await bench.bring(mail("two", Message_ID="<2@a.test>"))
    assert [each.text for each in desk.stored] == ["one", "two"]


async def test_old_mail_is_left_alone_and_what_came_while_we_were_away_is_read(office: PostOffice) -> None:
    desk, folder = channels.RecordingDesk(), office.new_folder()
    office.bring(folder, mail("before us", Message_ID="<0@a.test>"))
    async with opened(office, desk, folder=folder) as bench:
        assert await bench.bring(mail("first"))
    office.bring(folder, mail("meanwhile", Message_ID="<2@a.test>"))
    async with opened(office, desk, folder=folder) as bench:
        assert await bench.bring(mail("later", Message_ID="<3@a.test>"))
    assert [each.text for each in desk.stored] == ["first", "meanwhile", "later"]


async def test_mails_that_are_numbered_anew_are_known_again(office: PostOffice) -> None:
    desk, folder = channels.RecordingDesk(), office.new_folder()
    async with opened(office, desk, folder=folder) as bench:
        assert await bench.bring(mail("first"))
    office.bring(folder, mail("meanwhile", Message_ID="<2@a.test>"))
    at = desk.read_until[""].split(":")[2]
    await desk.move_cursor(Cursor(value=f"1:1:{at}"))
    async with opened(office, desk, folder=folder) as bench:
        assert await bench.bring(mail("later", Message_ID="<3@a.test>"))
    assert [each.text for each in desk.stored] == ["first", "meanwhile", "later"]


async def test_answer_goes_into_the_thread_of_its_mail(office: PostOffice) -> None:
    desk = channels.RecordingDesk()
    async with opened(office, desk) as bench:
        assert await bench.bring(
            mail(
                "Hello",
                References="<root@a.test> <2@a.test>",
                In_Reply_To="<2@a.test>",
                Subject="Re: A question",
            )
        )
        (answer,) = await desk.answers("turn-1")
        answer = msgspec.structs.replace(answer, text="**Yes** & [more](https://a.test)", is_markdown=True)
        assert isinstance(await bench.channel.send(answer), deliveries.Sent)
    (source,) = [each.source for each in desk.stored]
    assert (source.thread_id, source.message_id, source.chat_topic) == (
        "<root@a.test>",
        "<1@a.test>",
        "A question",
    )
    (sent,) = office.taken()
    assert (sent["In-Reply-To"], sent["Subject"]) == ("<1@a.test>", "Re: A question")
    assert sent["References"].split() == ["<root@a.test>", "<2@a.test>", "<1@a.test>"]
    assert sent["Auto-Submitted"] == "auto-replied"
    plain, html = sent.iter_parts()
    assert plain.get_content().strip() == "Yes & more (https://a.test)"
    assert "<strong>Yes</strong> &amp;" in html.get_content()


async def test_files_of_a_mail_can_be_had_and_sent(office: PostOffice, tmp_path: Any) -> None:
    desk = channels.RecordingDesk()
    made = EmailMessage()
    for name, value in {"From": "ann@a.test", "Message-ID": "<1@a.test>"}.items():
        made[name] = value
    made.set_content("look")
    made.add_attachment(b"\x89PNG" * 9, maintype="image", subtype="png", filename="../x.png")
    async with opened(office, desk) as bench:
        assert await bench.bring(made.as_bytes())
        (incoming,) = desk.stored
        (file,) = incoming.files
        assert (incoming.text, file.name, file.kind, file.size) == ("look", "../x.png", "image/png", 36)
        assert b"".join([piece async for piece in bench.channel.fetch(file, 100)]) == b"\x89PNG" * 9
        with pytest.raises(errors.FileUnavailable):
            [piece async for piece in bench.channel.fetch(file, 10)]
        (tmp_path / "out").write_bytes(b"bytes")
        stored = StoredFile(
            digest="d", name="a\nb.txt", kind="text/plain", size=5, path=str(tmp_path / "out")
        )
        (answer,) = await desk.answers("turn-1")
        outcome = await bench.channel.send(msgspec.structs.replace(answer, files=(stored,)))
        assert isinstance(outcome, deliveries.Sent)
    (sent,) = office.taken()
    (attached,) = sent.iter_attachments()
    assert attached.get_payload(decode=True) == b"bytes"
    assert "\n" not in (attached.get_filename() or "")


async def test_answer_of_which_nothing_is_known_is_looked_for_among_what_was_sent(office: PostOffice) -> None:
    desk, sent = channels.RecordingDesk(), office.new_folder()
    async with opened(office, desk, sent_folder=sent) as bench:
        assert await bench.bring(mail())
        (answer,) = await desk.answers("turn-1")
        office.mode("cuts")
        assert isinstance(await bench.channel.send(answer), deliveries.Unknown)
        assert isinstance(await bench.channel.find(answer), deliveries.NotSent)
        (taken,) = office.taken()
        office.bring(sent, taken.as_bytes())
        found = await bench.channel.find(answer)
        assert found == deliveries.Sent(message_id=taken["Message-ID"])
    async with opened(office, channels.RecordingDesk()) as bench:
        assert isinstance(await bench.channel.find(answer), deliveries.Unknown)


async def test_only_proven_senders_get_through_where_the_server_checks(office: PostOffice) -> None:
    desk = channels.RecordingDesk()
    async with opened(office, desk, authserv_id="mx.test") as bench:
        assert bench.channel.capabilities.reliable_sender_ids
        assert await bench.bring(mail("forged"))
        proof = "mx.test; dmarc=pass (p=none) header.from=a.test"
        assert await bench.bring(mail("proven", Message_ID="<2@a.test>", Authentication_Results=proof))
    assert [each.text for each in desk.offered] == ["proven"]


async def test_refused_for_good_is_hopeless_and_a_wrong_password_is_not(office: PostOffice) -> None:
    desk = channels.RecordingDesk()
    async with opened(office, desk) as bench:
        assert await bench.bring(mail())
        (answer,) = await desk.answers("turn-1")
        office.mode("refuses for good")
        outcome = await bench.channel.send(answer)
        assert isinstance(outcome, deliveries.NotSent)
        assert outcome.hopeless
        office.mode("works")
        wrong = email.Channel(msgspec.structs.replace(bench.channel._options, password=lambda: "wrong"))
        outcome = await wrong.send(answer)
        assert isinstance(outcome, deliveries.NotSent)
        assert not outcome.hopeless
        nobody = msgspec.structs.replace(answer, to=msgspec.structs.replace(answer.to, chat_id="nobody"))
        assert await bench.channel.send(nobody) == deliveries.NotSent(
            why="no mail can be made of it: it is no address", hopeless=True
        )


async def test_trouble_of_the_mailbox_is_told(office: PostOffice) -> None:
    desk = channels.RecordingDesk()
    bench = EmailBench(office, desk, None, folder="there is none")
    receiving = asyncio.create_task(bench.channel.receive(desk))
    await until(lambda: bench.channel.trouble() is not None)
    receiving.cancel()
    await asyncio.wait({receiving})
    await bench.channel.close()


async def test_mailbox_is_examined(office: PostOffice) -> None:
    bench = EmailBench(office, channels.RecordingDesk(), None)
    office.mode("works")
    who, unproven = await bench.channel.examine(in_use=False, home="ann@a.test")
    assert (who.text, unproven.verdict) == (
        f"This is {LOGIN}; its folder {bench.folder} can be read.",
        Severity.WARNING,
    )
    office.mode("refuses")
    _, unsent, homeless, _ = await bench.channel.examine(in_use=True, home="ann")
    assert [each.verdict for each in (unsent, homeless)] == [Severity.FAILED] * 2
    await bench.channel.close()
    (lost,) = await EmailBench(office, channels.RecordingDesk(), None, folder="x").channel.examine(
        in_use=False
    )
    assert lost.verdict is Severity.FAILED
    office.mode("works")
