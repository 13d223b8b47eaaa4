"""Files from and to the page, over the HTTP API: taken with their message or not at all, and shown to whom it
concerns."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest

from frontdesk import errors
from frontdesk.files import FileShelf
from frontdesk.files.shelf import UNFINISHED
from frontdesk.flow.files import BROUGHT_AT_ONCE, UNSENT_KEPT, UNSENT_MESSAGES
from frontdesk.model import events, repeats
from frontdesk.model.chats import Attachment
from frontdesk.model.files import FileSettings
from frontdesk.testing.clock import SettableClock
from tests.flow.harness import Notebook, Resting, poll
from tests.flow.test_files import Looker
from tests.integration.test_acting import ANN, BOB, VIC, Front, open_front
from tests.integration.visitors import NAME

PNG = b"\x89PNG\r\n\x1a\n" + bytes(20)
LIMITS = FileSettings(most_bytes=100_000, most_files=3)
SVG = b'<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>'
REPLAYED = "idempotent-replayed"
HOSTILE = "../../" + "a\0\u202egnp." + "x" * 4096 + "\u2066.png"


class Files:
    """The API with a place for files."""

    def __init__(self, front: Front, folder: Path) -> None:
        self.front = front
        self.folder = folder

    async def bring(self, who: str, content: Any, name: str = "a.txt", kind: str = "") -> httpx.Response:
        headers = {NAME: who, "content-type": kind or "application/octet-stream"}
        asked = {"params": {"name": name}, "headers": headers, "content": content}
        return await self.front.client.post("/api/v1/files", **asked)

    async def brought(self, who: str, content: bytes, name: str = "a.txt", kind: str = "") -> str:
        answer = await self.bring(who, content, name, kind)
        assert answer.status_code == httpx.codes.CREATED, answer.text
        return str(answer.json()["id"])

    async def chat(self, who: str, *files: str, text: str = "look", key: str | None = None) -> dict[str, Any]:
        """A chat that begins with a message and its files, when it is answered."""
        answer = await self.front.post(who, "/chats", key=key, text=text, files=files)
        assert answer.status_code == httpx.codes.ACCEPTED, answer.text
        taken: dict[str, Any] = answer.json()
        await self.front.house.finished(taken["turn_id"])
        return taken

    def on_disk(self) -> list[Path]:
        return [each for each in self.folder.rglob("*") if each.is_file()]


@asynccontextmanager
async def open_files(url: str, tmp_path: Path, **more: Any) -> AsyncIterator[Files]:
    folder = tmp_path / "home" / "files"
    given = {"files": LIMITS, "shelf": FileShelf(folder)} | more
    async with open_front(url, **given) as front:
        yield Files(front, folder)


@pytest.fixture
async def files(tmp_path: Path) -> AsyncIterator[Files]:
    async with open_files("sqlite:///:memory:", tmp_path) as opened:
        yield opened


async def test_form_is_not_taken_for_a_file(files: Files) -> None:
    refused = await files.bring(ANN, b"--x\r\n\r\nhi\r\n--x--", kind="Multipart/form-data; boundary=x")
    assert refused.status_code == httpx.codes.UNSUPPORTED_MEDIA_TYPE
    assert "not in a form" in refused.json()["detail"]
    assert files.on_disk() == []


async def test_chat_that_begins_with_a_file_is_called_by_what_was_written(files: Files) -> None:
    file = await files.brought(ANN, PNG, "a.png")
    begun = await files.chat(ANN, file, text="what is in it?")
    listed = (await files.front.get(ANN, "/sessions")).json()["items"]
    assert [each["name"] for each in listed if each["id"] == begun["session_id"]] == ["what is in it?"]


async def test_files_of_the_page_are_shown_to_the_agent_as_those_of_any_chat(
    store_url: str, tmp_path: Path
) -> None:
    looker = Looker(images=True)
    async with open_files(store_url, tmp_path, agent=looker) as files:
        photo = await files.brought(ANN, PNG, "cat.png", "image/png")
        notes = await files.brought(ANN, b"milk", "notes.txt", "text/plain")
        taken = await files.chat(ANN, photo, notes)
        assert [part["type"] for part in looker.turns[0].input["content"]] == [
            *("text", "text", "image_url", "text", "text")
        ]
        assert "milk" in looker.shown
        path = f"/sessions/{taken['session_id']}/messages"
        alone = await files.front.post(
            ANN, path, text="", files=[await files.brought(ANN, b"eggs", "more.txt")]
        )
        await files.front.house.finished(alone.json()["turn_id"])
        assert "eggs" in looker.shown


async def test_files_written_into_a_chat_are_shown_there_too(tmp_path: Path) -> None:
    async with open_files("sqlite:///:memory:", tmp_path, notebook=Notebook(most_files=1)) as files:
        front, session = files.front, await files.front.session()
        brought = await files.brought(ANN, PNG, "cat.png")
        await front.post(ANN, f"/sessions/{session}/messages", text="see", files=[brought])
        await front.house.notebook.wait_for(2, "notice")
        carried = [file.name for each in front.house.notebook.sent for file in each.files]
        assert carried == ["cat.png"]


async def test_message_with_files_is_one_however_often_it_is_sent(store_url: str, tmp_path: Path) -> None:
    clock = SettableClock(datetime.now(UTC))
    async with open_files(store_url, tmp_path, clock=clock) as files:
        front, session = files.front, await files.front.session()
        path, said = (
            f"/sessions/{session}/messages",
            {"text": "once", "files": [await files.brought(ANN, PNG)]},
        )
        sent = await asyncio.gather(*(front.post(ANN, path, key="k", **said) for _ in range(4)))
        (turn_id,) = {each.json()["turn_id"] for each in sent if each.status_code == httpx.codes.ACCEPTED}
        await front.house.finished(turn_id)
        chat = {"text": "new", "files": [await files.brought(ANN, PNG)]}
        first = (await front.post(ANN, "/chats", key="c", **chat)).json()
        # By then the keys are forgotten, as they are where the gateway died before the answer was kept.
        clock.advance(repeats.KEPT + timedelta(seconds=1))
        again = await front.post(ANN, path, key="k", **said)
        assert REPLAYED not in again.headers
        assert (again.json()["turn_id"], again.json()["repeated"]) == (turn_id, True)
        same = (await front.post(ANN, "/chats", key="c", **chat)).json()
        assert (same["turn_id"], same["session_id"]) == (first["turn_id"], first["session_id"])


async def test_refused_message_leaves_its_files_for_another_and_none_is_sent_twice(tmp_path: Path) -> None:
    async with open_files("sqlite:///:memory:", tmp_path, agent=Resting()) as files:
        front, session = files.front, await files.front.session()
        path, brought = f"/sessions/{session}/messages", await files.brought(ANN, PNG)
        command = await front.post(ANN, path, text="/new", files=[brought])
        assert command.status_code == 400
        assert "a command takes none" in command.json()["detail"]
        gone = await front.post(ANN, path, text="both", files=[brought, "f_nothing"])
        assert gone.status_code == 409
        assert "attach it again" in gone.json()["detail"]
        assert (await front.post(ANN, path, text="now", files=[brought])).status_code == 202
        assert (await front.post(ANN, path, text="again", files=[brought])).status_code == 409
        rows = await front.house.store.files.brought("matrix:ann")
        assert rows == []


async def test_nobody_sends_or_drops_what_another_brought(files: Files) -> None:
    front, brought = files.front, await files.brought(ANN, PNG)
    assert (await front.post(BOB, "/chats", text="mine", files=[brought])).status_code == 409
    assert (await front.post(BOB, f"/files/{brought}/discard")).json() is False
    assert (await files.bring(VIC, PNG)).status_code == 403
    assert (await files.bring("nobody", PNG)).status_code == 401
    taken = await files.chat(ANN, brought)
    (row,) = (await front.get(ANN, f"/sessions/{taken['session_id']}/messages")).json()["items"][:1]
    digest = row["message"]["content"][1]["stored_file"]["digest"]
    path = f"/sessions/{taken['session_id']}/files/{digest}"
    assert (await front.get(ANN, path)).content == PNG
    assert (await front.get(VIC, path)).content == PNG
    assert (await front.get(BOB, path)).status_code == 404
    theirs = await files.chat(BOB)
    assert (await front.get(BOB, f"/sessions/{theirs['session_id']}/files/{digest}")).status_code == 404


async def test_what_an_agent_gives_can_be_saved_and_is_never_a_page(tmp_path: Path) -> None:
    looker = Looker()
    looker.says = [
        events.File(data=SVG, name='dr"aw\r\n.svg', kind="image/svg+xml"),
        events.Text(text="here"),
    ]
    async with open_files("sqlite:///:memory:", tmp_path, agent=looker) as files:
        front, taken = files.front, await files.chat(ANN)
        (reply,) = (await front.get(ANN, f"/turns/{taken['turn_id']}")).json()["replies"]
        assert reply["text"] == "here"
        (file,) = reply["files"]
        answer = await front.get(ANN, f"/sessions/{taken['session_id']}/files/{file['digest']}")
        assert answer.content == SVG
        assert answer.headers["content-type"] == "application/octet-stream"
        assert answer.headers["content-disposition"].startswith("attachment; filename*=UTF-8''dr%22aw")
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert "sandbox" in answer.headers["content-security-policy"]
        picture = await front.client.get(
            f"/sessions/{taken['session_id']}/pictures/{file['digest']}", headers={NAME: ANN}
        )
        assert picture.status_code == 404


@pytest.mark.parametrize("name", [HOSTILE, "", "..", "/etc/passwd", "a\nb", "CON"])
async def test_name_of_a_file_misleads_nobody(files: Files, name: str) -> None:
    answer = await files.bring(ANN, b"", name)
    told = answer.json()
    assert told["size"] == 0
    assert 0 < len(told["name"]) <= 120
    assert told["name"].isprintable()
    assert not set(told["name"]) & set("/\\\0\u202e\u2066")
    await files.chat(ANN, told["id"])


async def endless() -> AsyncIterator[bytes]:
    while True:
        yield bytes(50_000)


async def test_file_that_is_too_large_is_refused_while_it_comes_and_leaves_nothing(files: Files) -> None:
    said = await files.bring(ANN, bytes(LIMITS.most_bytes + 1))
    assert said.status_code == 413
    assert f"{LIMITS.most_bytes} are allowed" in said.json()["detail"]
    with pytest.raises(httpx.TransportError):
        # Whoever goes on sending is cut off.
        (await files.bring(ANN, endless())).raise_for_status()
    assert (await files.bring(ANN, unsaid(LIMITS.most_bytes + 1))).status_code == 413
    assert (await files.bring(ANN, unsaid(LIMITS.most_bytes))).status_code == 201
    assert len(files.on_disk()) == 1


async def unsaid(size: int) -> AsyncIterator[bytes]:
    """A body whose length nobody is told."""
    yield bytes(size)


async def test_message_brings_no_more_files_than_it_may(files: Files) -> None:
    ids = [await files.brought(ANN, bytes([number])) for number in range(4)]
    for wrong, why in ((ids, "may bring 3 files"), ([ids[0]] * 2, "twice"), (["f_x"] * 10_000, "may bring")):
        refused = await files.front.post(ANN, "/chats", text="all", files=wrong)
        assert refused.status_code == 400
        assert why in refused.json()["detail"]


async def test_of_files_that_are_never_sent_the_oldest_give_way(files: Files) -> None:
    most = UNSENT_MESSAGES * LIMITS.most_files
    ids = [await files.brought(ANN, bytes([number])) for number in range(most + 2)]
    kept = await files.front.house.store.files.brought("matrix:ann")
    assert [each.turn_id for each in kept] == ids[2:]
    assert len(files.on_disk()) == most
    assert (await files.front.post(ANN, f"/files/{ids[2]}/discard")).json() is True
    assert len(files.on_disk()) == most - 1


async def test_full_disk_is_told_and_nothing_is_left(tmp_path: Path) -> None:
    folder = tmp_path / "full"
    async with open_files(
        "sqlite:///:memory:", tmp_path, shelf=FileShelf(folder, spares_bytes=2**62)
    ) as files:
        answer = await files.bring(ANN, PNG)
        assert answer.status_code == 507
        assert "no room" in answer.json()["detail"]
        assert not any(each.is_file() for each in folder.rglob("*"))


async def test_who_brings_many_at_once_waits_and_who_leaves_leaves_nothing(files: Files) -> None:
    begun, may_end = asyncio.Event(), asyncio.Event()

    async def slow() -> AsyncIterator[bytes]:
        yield b"first"
        begun.set()
        await may_end.wait()
        yield b"last"

    def unfinished() -> list[Path]:
        return list((files.folder / UNFINISHED).glob("*"))

    sending = [asyncio.create_task(files.bring(ANN, slow())) for _ in range(BROUGHT_AT_ONCE)]
    await poll(lambda: _now(len(unfinished()) == BROUGHT_AT_ONCE or None))
    one_more = await files.bring(ANN, PNG)
    assert one_more.status_code == 429
    assert int(one_more.headers["retry-after"]) > 0
    assert (await files.bring(BOB, PNG)).status_code == 201, "others are not kept waiting"
    sending[0].cancel()
    await poll(lambda: _now(len(unfinished()) == BROUGHT_AT_ONCE - 1 or None))
    may_end.set()
    done = await asyncio.gather(*sending[1:])
    assert [each.status_code for each in done] == [201] * (BROUGHT_AT_ONCE - 1)
    assert unfinished() == []


async def _now(value: Any) -> Any:
    return value


async def test_unsent_file_is_forgotten_after_a_day_and_one_that_waits_with_its_message_is_not(
    store_url: str, tmp_path: Path
) -> None:
    clock = SettableClock(datetime.now(UTC))
    async with open_files(store_url, tmp_path, clock=clock, agent=Resting()) as files:
        front, session = files.front, await files.front.session()
        resting = await front.house.say("!rest")
        await files.brought(ANN, b"never sent")
        waits = await files.brought(ANN, b"sent")
        path = f"/sessions/{session}/messages"
        taken = await front.post(ANN, path, text="later", files=[waits])
        clock.advance(UNSENT_KEPT + timedelta(hours=1))
        await front.house.gateway.parts.filing.sweep()
        assert [each.read_bytes() for each in files.on_disk()] == [b"sent"]
        await front.post(ANN, f"/sessions/{session}/stop")
        await front.house.finished(resting.turn_id)
        turn = await front.house.finished(taken.json()["turn_id"])
        assert turn.session_id
        rows = await front.house.sessions.load_transcript(turn.session_id)
        (asked,) = [row for row in rows if isinstance(row.get("content"), list)]
        assert asked["content"][1]["stored_file"]["size"] == len(b"sent")
        assert (await front.post(ANN, f"/sessions/{turn.session_id}/forget")).json()["is_over"]
        assert files.on_disk() == []


async def test_no_channel_names_bytes_that_its_sender_did_not_bring(files: Files) -> None:
    brought = await files.brought(ANN, b"hers")
    (kept,) = await files.front.house.store.files.brought("matrix:ann")
    stolen = Attachment(id=brought, name="a", digest=kept.digest)
    with pytest.raises(errors.FileUnavailable, match="attach it again"):
        await files.front.house.say("give", "bob", files=(stolen,))
