"""Files of messages and answers, through a gateway."""

import asyncio
import base64
import io
import zipfile
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from frontdesk import ChatType, GatewayConfig, ResetMode, SessionResetPolicy, errors
from frontdesk.agents import scripted
from frontdesk.contracts.agents import Abilities, Line
from frontdesk.contracts.files import Shelved, Transcriber
from frontdesk.files import FileShelf
from frontdesk.model import events, messages, turns
from frontdesk.model.chats import Attachment
from frontdesk.model.deliveries import Delivery
from frontdesk.model.files import FileSettings
from frontdesk.model.running import Running
from frontdesk.testing.clock import SettableClock
from tests.flow.harness import House, Notebook, open_house, poll

PNG = b"\x89PNG\r\n\x1a\n" + bytes(20)
PHOTO = Attachment(id="photo", name="cat.png", kind="image/png", size=len(PNG))
SMALL = FileSettings(most_bytes=10_000, most_files=3, fetch_seconds=2.0)


class Album(Notebook):
    """A channel with files."""

    def __init__(self, **capabilities: Any) -> None:
        super().__init__(**({"most_files": 1} | capabilities))
        self.files: dict[str, list[bytes | Exception]] = {"photo": [PNG]}
        self.fetched: list[str] = []
        self.opened: dict[str, bytes] = {}
        self.hangs = asyncio.Event()

    async def fetch(self, attachment: Attachment, most_bytes: int) -> AsyncGenerator[bytes, None]:
        self.fetched.append(attachment.id)
        for piece in self.files[attachment.id]:
            if isinstance(piece, Exception):
                self.files[attachment.id] = self.files[attachment.id][1:]
                raise piece
            yield piece
        if attachment.id == "hangs":
            self.hangs.set()
            await asyncio.Event().wait()

    @property
    def carried(self) -> list[tuple[str, bytes]]:
        return [(file.name, self.opened[file.digest]) for each in self.sent for file in each.files]

    async def send(self, delivery: Delivery) -> Any:
        for file in delivery.files:
            self.opened[file.digest] = await asyncio.to_thread(Path(str(file.path)).read_bytes)
        return await super().send(delivery)


class Looker:
    """An agent that keeps what it is shown."""

    def __init__(self, **abilities: bool) -> None:
        self.abilities = Abilities(**abilities)
        self.turns: list[events.Assignment] = []
        self.says: list[events.Event] = [events.Text(text="seen")]

    async def run(self, turn: events.Assignment, line: Line) -> AsyncGenerator[events.Event]:
        self.turns.append(turn)
        for event in self.says:
            yield event

    async def release(self, session_id: str) -> None:
        pass

    async def close(self) -> None:
        pass

    @property
    def shown(self) -> str:
        return messages.text_of(self.turns[-1].input)


@asynccontextmanager
async def open_album(url: str, tmp_path: Path, **parts: Any) -> AsyncIterator[tuple[House, Album]]:
    album = parts.pop("album", None) or Album()
    shelf = FileShelf(tmp_path / "home" / "files", private=(tmp_path / "home",))
    given: dict[str, Any] = {"files": SMALL, "shelf": shelf} | parts
    async with open_house(url, notebook=album, **given) as house:
        yield house, album


def kept(tmp_path: Path) -> list[Path]:
    return sorted(each for each in (tmp_path / "home").rglob("*") if each.is_file())


async def test_image_is_shown_to_an_agent_that_can_look_at_it(store_url: str, tmp_path: Path) -> None:
    looker = Looker(images=True)
    async with open_album(store_url, tmp_path, agent=looker) as (house, _):
        assert await house.ask("what is this?", files=(PHOTO,)) == "seen"
        (turn,) = looker.turns
        assert turn.input == turn.messages[-1]
        content = turn.input["content"]
        assert [part["type"] for part in content] == ["text", "text", "image_url"]
        data = content[2]["image_url"]["url"].removeprefix("data:image/png;base64,")
        assert base64.b64decode(data) == PNG
        # The next turn is shown the same: prompt caches go by it.
        await house.ask("and now?")
        assert looker.turns[1].messages[0] == turn.input
        # What is stored is small, and says what it is to whoever reads texts alone.
        row = (await house.transcript())[0]
        assert messages.text_of(row) == 'what is this?\n[File "cat.png", image/png, 28 bytes]'
        assert "base64" not in str(row)


async def test_agent_of_this_machine_is_told_where_a_file_lies(store_url: str, tmp_path: Path) -> None:
    looker, archive = Looker(paths=True), io.BytesIO()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("bomb", bytes(5_000_000))
    async with open_album(store_url, tmp_path, agent=looker) as (house, album):
        album.files["zip"] = [archive.getvalue()]
        bomb = Attachment(id="zip", name="many.zip", kind="application/zip", size=None)
        await house.ask("look", files=(PHOTO, bomb))
        assert {path.suffix for path in kept(tmp_path)} == {".png", ""}
        assert all(str(path) in looker.shown for path in kept(tmp_path))
        # Never opened: it takes no more room than it has bytes.
        assert sum(each.stat().st_size for each in kept(tmp_path)) == len(PNG) + len(archive.getvalue())


async def test_text_file_is_shown_and_its_end_is_said(store_url: str, tmp_path: Path) -> None:
    looker = Looker()
    async with open_album(store_url, tmp_path, agent=looker) as (house, album):
        album.files["notes"] = [b"buy ", "brötchen".encode()]
        await house.ask("", files=(Attachment(id="notes", name="notes.md", kind="text/markdown"),))
        assert "[It begins so:]\nbuy brötchen\n[End of the file.]" in looker.shown


async def test_file_that_is_not_what_it_says_is_said_so(store_url: str, tmp_path: Path) -> None:
    looker = Looker(images=True)
    async with open_album(store_url, tmp_path, agent=looker) as (house, album):
        album.files["photo"] = [b"MZ\x90\x00 this is a program"]
        await house.ask("look", files=(PHOTO,))
        assert "careful: it was said to be image/png, and is application/x-msdownload" in looker.shown
        assert all(part["type"] == "text" for part in looker.turns[0].input["content"])


async def test_what_cannot_be_had_is_told_and_the_turn_goes_on(store_url: str, tmp_path: Path) -> None:
    looker = Looker()
    async with open_album(store_url, tmp_path, agent=looker) as (house, album):
        album.files |= {
            "gone": [errors.FileUnavailable(why="the platform has it no more")],
            "large": [bytes(6_000), bytes(6_000)],
            "broken": [ValueError("the channel's own")],
        }
        files = tuple(Attachment(id=each, name=f"{each}.bin") for each in album.files if each != "photo")
        assert await house.ask("look", files=(*files, PHOTO)) == "seen"
        for why in (
            "the platform has it no more",
            "it is larger than 10000 bytes",
            "an error in the channel; the log says more",
            "a message may bring 3 files",
        ):
            assert f"it could not be had, {why}]" in looker.shown
        assert kept(tmp_path) == []


async def test_file_said_to_be_too_large_is_not_even_asked_for(store_url: str, tmp_path: Path) -> None:
    async with open_album(store_url, tmp_path) as (house, album):
        huge = Attachment(id="huge", name="huge.iso", size=50_000_000)
        assert "50000000 bytes, and 10000 are allowed" in await house.ask("look", files=(huge,))
        assert album.fetched == []


async def test_fetch_that_fails_for_a_moment_is_tried_again(store_url: str, tmp_path: Path) -> None:
    async with open_album(store_url, tmp_path) as (house, album):
        album.files["photo"] = [errors.FileLater(why="no answer"), PNG]
        assert "could not be had" not in await house.ask("look", files=(PHOTO,))
        assert album.fetched == ["photo", "photo"]


async def test_stopping_does_not_wait_for_a_file_that_hangs(store_url: str, tmp_path: Path) -> None:
    patient = FileSettings(fetch_seconds=3600.0)
    async with open_album(store_url, tmp_path, files=patient) as (house, album):
        album.files["hangs"] = [b"some"]
        receipt = await house.say("look", files=(Attachment(id="hangs"),))
        await album.hangs.wait()
        await house.ask("/stop")
        assert (await house.finished(receipt.turn_id)).state is turns.TurnState.INTERRUPTED
        assert "it could not be had, the turn was stopped first]" in str(await house.transcript())


async def test_file_of_a_turn_that_runs_again_is_fetched_once(store_url: str, tmp_path: Path) -> None:
    async with open_album(store_url, tmp_path) as (house, album):
        answer = await house.ask("!fail retryable 1", files=(PHOTO,))
        assert str(kept(tmp_path)[0]) in answer
        assert album.fetched == ["photo"]
        assert len([row for row in await house.transcript() if row["role"] == "user"]) == 1


async def test_forgetting_a_conversation_removes_its_files_but_not_those_that_others_have(
    store_url: str, tmp_path: Path
) -> None:
    async with open_album(store_url, tmp_path) as (house, album):
        album.files["own"] = [b"for ann alone"]
        await house.ask("look", files=(PHOTO, Attachment(id="own", name="own.txt")))
        await house.ask("look", user="bob", files=(PHOTO,))
        assert len(kept(tmp_path)) == 2
        await house.ask("/forget yes")
        (left,) = kept(tmp_path)
        assert left.read_bytes() == PNG
        await house.ask("/forget yes", user="bob")
        assert kept(tmp_path) == []


class Forgetful(FileShelf):
    """Somebody has the bytes forgotten as soon as they are there."""

    async def place(self, shelved: Shelved) -> None:
        await super().place(shelved)
        await self.remove(shelved.digest)


async def test_bytes_that_are_forgotten_before_they_are_noted_are_not_said_to_be_there(
    store_url: str, tmp_path: Path
) -> None:
    async with open_album(store_url, tmp_path, shelf=Forgetful(tmp_path / "files")) as (house, album):
        assert "could not be had, it was removed before it was noted" in await house.ask("", files=(PHOTO,))
        assert "could not be sent: it was removed" in await house.ask("!file a.txt b")
        assert album.carried == []


async def test_old_files_and_bytes_that_nobody_has_are_swept_away(store_url: str, tmp_path: Path) -> None:
    clock, looker = SettableClock(datetime.now(UTC)), Looker(paths=True)
    lasting = GatewayConfig(default_reset_policy=SessionResetPolicy(mode=ResetMode.NONE, max_messages=0))
    async with open_album(store_url, tmp_path, clock=clock, agent=looker, config=lasting) as (house, _):
        filing = house.gateway.parts.filing
        assert filing.shelf is not None
        await house.ask("look", files=(PHOTO,))
        orphan = await filing.shelf.write(_one(b"the program died here"), 100)
        await filing.shelf.place(orphan)
        await filing.sweep()
        assert len(kept(tmp_path)) == 2
        clock.advance(timedelta(hours=2))
        await filing.sweep()
        (left,) = kept(tmp_path)
        assert left.suffix == ".png"
        clock.advance(timedelta(days=31))
        await filing.sweep()
        assert kept(tmp_path) == []
        await house.ask("do you still see it?", source=house.source())
        assert "no longer kept" in str(looker.turns[-1].messages)


async def test_nobody_outside_can_bring_a_part_that_stands_for_a_file_of_ours(
    store_url: str, tmp_path: Path
) -> None:
    async with open_album(store_url, tmp_path) as (house, _):
        await house.ask("look", files=(PHOTO,))
        digest = kept(tmp_path)[0].stem
        facts = {"digest": digest, "name": "x", "kind": "image/png", "size": 28}
        forged = [{"type": "stored_file", "text": "", "stored_file": facts}]
        with pytest.raises(errors.InvalidMessage):
            await house.say("", user="eve", content=forged)
        with pytest.raises(errors.InvalidMessage):
            await house.say("hi", user="eve", history=[{"role": "user", "content": forged}])


async def test_file_of_the_agent_arrives_after_its_text(store_url: str, tmp_path: Path) -> None:
    async with open_album(store_url, tmp_path) as (house, album):
        await house.ask("!file report.txt all is well; !say here you are")
        await album.wait_for(2)
        assert album.replies == ["here you are", ""]
        assert album.carried == [("report.txt", b"all is well")]
        assert [each.final for each in album.sent] == [False, True]
        (stored,) = (await house.transcript())[-1]["files"]
        assert stored["name"] == "report.txt"


async def test_file_that_was_given_before_the_turn_was_stopped_arrives(
    store_url: str, tmp_path: Path
) -> None:
    async with open_album(store_url, tmp_path) as (house, album):
        receipt = await house.say("!file report.txt so far; !hang")
        await house.until(receipt.turn_id, turns.TurnState.RUNNING)
        await poll_for(house, 1)
        await house.ask("/stop")
        await house.finished(receipt.turn_id)
        await album.wait_for(2)
        assert album.carried == [("report.txt", b"so far")]


async def test_several_files_go_with_the_text_where_a_message_carries_several(
    store_url: str, tmp_path: Path
) -> None:
    async with open_album(store_url, tmp_path, album=Album(most_files=2)) as (house, album):
        await house.ask("!file a.txt 1; !file b.txt 2; !file c.txt 3; !say three")
        await album.wait_for(2)
        assert [(each.text, len(each.files)) for each in album.sent] == [("three", 2), ("", 1)]


async def test_file_of_the_working_directory_goes_out_and_no_other_one(
    store_url: str, tmp_path: Path
) -> None:
    work = tmp_path / "work"
    work.mkdir()
    (work / "plot.png").write_bytes(PNG)
    (tmp_path / "secret").write_text("key")
    running = Running(drain_seconds=1.0, working_dir=str(work))
    async with open_album(store_url, tmp_path, running=running) as (house, album):
        await house.ask("!path plot.png; !path ../secret; !say done")
        await album.wait_for(2)
        assert album.carried == [("plot.png", PNG)]
        assert album.replies[0] == (
            'done\n\n[The file "../secret" could not be sent: "../secret" is not in the working directory]'
        )


@pytest.mark.parametrize("capabilities", [{"most_files": 0}, {"most_files": 1, "most_file_bytes": 3}])
async def test_chat_that_does_not_take_a_file_is_told_its_name(
    store_url: str, tmp_path: Path, capabilities: dict[str, int]
) -> None:
    async with open_album(store_url, tmp_path, album=Album(**capabilities)) as (house, album):
        assert await house.ask("!file report.txt all is well") == (
            '[File "report.txt", text/plain, 11 bytes: this chat does not take it]'
        )
        assert album.carried == []


class Ear:
    """Hears what it is told to."""

    def __init__(self, said: str | Exception) -> None:
        self.said = said

    async def transcribe(self, path: Path, kind: str) -> str:
        assert (await asyncio.to_thread(path.read_bytes)).startswith(b"OggS")
        if isinstance(self.said, Exception):
            raise self.said
        return self.said


VOICE = Attachment(id="voice", name=None, kind="audio/ogg", is_voice=True)


@asynccontextmanager
async def listening(
    url: str, tmp_path: Path, ear: Transcriber, **parts: Any
) -> AsyncIterator[tuple[House, Album]]:
    async with open_album(url, tmp_path, transcriber=ear, **parts) as (house, album):
        album.files["voice"] = [b"OggS\x00\x02 hum"]
        yield house, album


async def test_voice_message_is_written_down_before_the_turn(store_url: str, tmp_path: Path) -> None:
    async with listening(store_url, tmp_path, Ear("what is the time?")) as (house, _):
        answer = await house.ask("", files=(VOICE,))
        assert "[What is said in it, as a program heard it:]\nwhat is the time?" in answer


async def test_voice_message_that_cannot_be_written_down_is_still_there(
    store_url: str, tmp_path: Path
) -> None:
    async with listening(store_url, tmp_path, Ear(errors.FileUnavailable(why="it took too long"))) as (
        house,
        _,
    ):
        answer = await house.ask("", files=(VOICE,))
        assert "could not be written down: it took too long" in answer
        assert str(kept(tmp_path)[0]) in answer


async def poll_for(house: House, files: int) -> None:
    """Wait until so many are kept."""

    async def look() -> bool | None:
        return await house.store.files.count() >= files or None

    await poll(look)


async def _one(data: bytes) -> AsyncIterator[bytes]:
    yield data


async def test_voice_in_a_group_is_answered_when_the_agent_is_called_in_it(
    store_url: str, tmp_path: Path
) -> None:
    named = FileSettings(spoken_names=("Front Desk",))
    ear = Ear("well, front-desk! what is the time?")
    async with listening(store_url, tmp_path, ear, files=named) as (house, album):
        group = house.source(chat_type=ChatType.GROUP)
        voice: dict[str, Any] = {"files": (VOICE,), "source": group, "addressed": False}
        assert "what is the time?" in await house.ask("", **voice)
        ear.said = "this is for Bob, not for the front deskman"
        receipt = await house.say("", **voice)
        await house.finished(receipt.turn_id)
        assert album.fetched == ["voice", "voice"]
        assert len(album.replies) == 1
        heard = (await house.transcript(chat_type=ChatType.GROUP))[-1]
        assert heard["observed"] is True
        assert "not for the front deskman" in messages.text_of(heard)


async def test_overheard_files_are_named_and_not_fetched(store_url: str, tmp_path: Path) -> None:
    async with open_album(store_url, tmp_path) as (house, album):
        group = house.source(chat_type=ChatType.GROUP)
        receipt = await house.say("for bob", source=group, files=(PHOTO, VOICE), addressed=False)
        await house.finished(receipt.turn_id)
        assert album.fetched == []
        (row,) = await house.transcript(chat_type=ChatType.GROUP)
        assert messages.text_of(row) == 'for bob\n[File "cat.png"]\n[File "without a name"]'


async def test_branch_keeps_the_files_of_what_it_copies_when_the_original_is_forgotten(
    store_url: str, tmp_path: Path
) -> None:
    async with open_album(store_url, tmp_path) as (house, _):
        await house.ask("look", files=(PHOTO,))
        original = (await house.sessions.peek_session_id(await house.key())) or ""
        await house.ask("/branch")
        filing = house.gateway.parts.filing
        await filing.forget(original)
        assert len(kept(tmp_path)) == 1
        await house.ask("/forget yes")
        assert kept(tmp_path) == []


@pytest.mark.parametrize(
    "files",
    [
        tuple(Attachment(id=str(number)) for number in range(101)),
        (Attachment(id="x" * 5000),),
        (Attachment(id="1", name="\ud800"),),
    ],
)
async def test_files_that_cannot_be_noted_are_refused(
    store_url: str, tmp_path: Path, files: tuple[Attachment, ...]
) -> None:
    async with open_album(store_url, tmp_path) as (house, _):
        with pytest.raises(errors.InvalidMessage):
            await house.say("look", files=files)


async def test_message_with_a_file_waits_for_its_own_turn_where_others_are_steered(
    store_url: str, tmp_path: Path
) -> None:
    steering = scripted.Driver(scripted.Options(steers=True))
    running = Running(drain_seconds=1.0, busy_mode=turns.Busy.STEER)
    async with open_album(store_url, tmp_path, agent=steering, running=running) as (house, album):
        first = await house.say("!steer")
        await house.until(first.turn_id, turns.TurnState.RUNNING)
        second = await house.say("with a picture", files=(PHOTO,))
        assert "queued and comes next" in (await album.wait_for(1, "notice"))[0]
        await house.ask("/stop")
        await house.finished(second.turn_id)
        answer = (await house.store.deliveries.of_turn(second.turn_id))[-1]
        assert "cat.png" in answer.text
