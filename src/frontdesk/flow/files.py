"""Files: those of a message are fetched when its turn begins, those of the agent go out with its answer. Each
is kept once, and forgotten with its session."""

import asyncio
import re
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing
from datetime import timedelta
from typing import Any
from uuid import uuid4

from msgspec.structs import replace

from frontdesk import errors
from frontdesk.contracts.channels import Channel, Fetching
from frontdesk.contracts.clock import Clock
from frontdesk.contracts.files import Shelf, Shelved, Transcriber
from frontdesk.formats import media, quoting
from frontdesk.logs import get_logger
from frontdesk.model import events
from frontdesk.model.chats import Attachment, StoredFile
from frontdesk.model.deliveries import Delivery
from frontdesk.model.files import MAX_NAME_CHARACTERS, FileSettings, FileWay, KeptFile
from frontdesk.model.turns import Turn
from frontdesk.stores.arrivals import NOT_BROUGHT
from frontdesk.stores.store import Store

FIRST_PAUSE_SECONDS = 0.5
UNFINISHED_KEPT = timedelta(hours=1)
"""Bytes that nobody has yet may be somebody's in a moment."""
BROUGHT_AT_ONCE = 4
BRING_LATER_SECONDS = 5
UNSENT_KEPT = timedelta(days=1)
UNSENT_MESSAGES = 2
"""So many messages' worth of files may somebody have brought and not sent."""
MAX_SAID_CHARACTERS = 20_000
WORDS = re.compile(r"\w+")

NO_PLACE = "no place for files is set up here"
NOT_FETCHED = "files of this platform cannot be fetched"
LATE = "it did not come within {seconds:g} seconds"
CHANNEL_FAILED = "an error in the channel; the log says more"
LOST = "it was removed before it was noted"
STOPPED = "the turn was stopped first"
ONE_TOO_MANY = "a message may bring {most} files"
MISNAMED = "it was said to be {said}, and is {found}"
UNTOLD = "what is said in it could not be written down: {why}"

log = get_logger(__name__)


class Filing:
    """What is done with files, whoever they are from. Nothing here fails a turn."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        settings: FileSettings,
        shelf: Shelf | None = None,
        transcriber: Transcriber | None = None,
    ) -> None:
        self._store = store
        self._clock = clock
        self.settings = settings
        self.shelf = shelf
        self._transcriber = transcriber
        # Between the look whether anybody has some bytes and their end nobody comes to have them.
        self._lock = asyncio.Lock()
        self._bringing: Counter[str] = Counter()
        """How many files each person brings just now."""

    # What comes in

    async def received(
        self, turn: Turn, session_id: str, channel: Channel | None, stopping: asyncio.Event
    ) -> list[KeptFile]:
        """What became of the files of a message: fetched once, however often its turn is begun. Who wants the
        turn to stop does not wait for them."""
        if known := await self._store.files.of_turn(turn.id, session_id, FileWay.IN):
            return known
        if any(each.digest for each in turn.files):
            return await self._store.files.assign(turn.id, session_id)
        fetching = asyncio.create_task(self._fetch_all(turn, session_id, channel))
        stopped = asyncio.create_task(stopping.wait())
        try:
            await asyncio.wait({fetching, stopped}, return_when=asyncio.FIRST_COMPLETED)
            if not fetching.done():
                return [replace(each, why=STOPPED) for each in self._expected(turn, session_id)]
            kept = fetching.result()
        finally:
            fetching.cancel()
            stopped.cancel()
            await asyncio.wait({fetching, stopped})
        async with self._lock:
            kept = [self._still_here(each) for each in kept]
            await self._store.files.keep(kept)
        return kept

    def _still_here(self, kept: KeptFile) -> KeptFile:
        """Somebody else who had the same bytes may have had them forgotten meanwhile."""
        if kept.digest is None or (self.shelf and self.shelf.find(kept.digest)):
            return kept
        return replace(kept, digest=None, said=None, why=LOST)

    async def _fetch_all(self, turn: Turn, session_id: str, channel: Channel | None) -> list[KeptFile]:
        time = asyncio.get_running_loop().time
        deadline = time() + self.settings.fetch_seconds
        kept = []
        for about, attachment in zip(self._expected(turn, session_id), turn.files, strict=True):
            try:
                kept.append(await self._fetch(about, attachment, channel, deadline))
            except errors.FileUnavailable as error:
                log.info("file_unavailable", turn=turn.id, place=about.place, why=str(error))
                kept.append(replace(about, why=str(vars(error)["why"])))
        deadline = time() + self.settings.transcribe_seconds
        return [
            await self._listened_to(each, deadline) if attachment.is_voice else each
            for each, attachment in zip(kept, turn.files, strict=True)
        ]

    def _expected(self, turn: Turn, session_id: str) -> list[KeptFile]:
        """What the platform says of the files of a message."""
        return [
            KeptFile(
                turn_id=turn.id,
                way=FileWay.IN,
                place=place,
                session_id=session_id,
                name=_name(attachment.name, attachment.kind),
                kind=_kind_said(attachment.kind, attachment.name),
                size=max(attachment.size or 0, 0),
                kept_at=self._clock.now(),
            )
            for place, attachment in enumerate(turn.files)
        ]

    async def _fetch(
        self, about: KeptFile, attachment: Attachment, channel: Channel | None, deadline: float
    ) -> KeptFile:
        most = self.settings.most_bytes
        if about.place >= self.settings.most_files:
            raise errors.FileUnavailable(why=ONE_TOO_MANY.format(most=self.settings.most_files))
        if self.shelf is None or not isinstance(channel, Fetching):
            raise errors.FileUnavailable(why=NOT_FETCHED if self.shelf else NO_PLACE)
        if about.size > most:
            raise errors.FileUnavailable(why=f"it has {about.size} bytes, and {most} are allowed")
        timer = asyncio.timeout_at(deadline)
        try:
            async with timer:
                shelved = await self._patiently(self.shelf, channel, attachment)
        except TimeoutError:
            if not timer.expired():
                raise errors.FileUnavailable(why="the platform did not answer") from None
            raise errors.FileUnavailable(why=LATE.format(seconds=self.settings.fetch_seconds)) from None
        except errors.FrontdeskError as error:
            raise errors.FileUnavailable(why=vars(error).get("why") or str(error)) from error
        except Exception as error:
            log.exception("fetch_failed", turn=about.turn_id)
            raise errors.FileUnavailable(why=CHANNEL_FAILED) from error
        return await self._placed(self.shelf, about, shelved)

    async def _patiently(self, shelf: Shelf, channel: Fetching, attachment: Attachment) -> Shelved:
        """Fetch it, again and again as long as that may help."""
        pause = FIRST_PAUSE_SECONDS
        while True:
            pieces = channel.fetch(attachment, self.settings.most_bytes)
            try:
                async with aclosing(_closable(pieces)) as closed:
                    return await shelf.write(closed, self.settings.most_bytes)
            except errors.FileLater as error:
                log.info("fetch_again", why=str(error))
            await asyncio.sleep(pause)
            pause *= 2

    async def _placed(self, shelf: Shelf, about: KeptFile, shelved: Shelved) -> KeptFile:
        await shelf.place(shelved)
        found = media.look(shelved.head, whole=shelved.size <= len(shelved.head))
        kept = replace(about, digest=shelved.digest, size=shelved.size)
        if media.agrees(about.kind, found):
            return replace(kept, kind=found if about.kind == media.UNKNOWN else about.kind)
        return replace(kept, kind=found, why=MISNAMED.format(said=about.kind, found=found))

    async def _listened_to(self, kept: KeptFile, deadline: float) -> KeptFile:
        """With what is said in it, where somebody writes that down."""
        path = self.shelf.find(kept.digest) if self.shelf and kept.digest else None
        if self._transcriber is None or path is None:
            return kept
        try:
            async with asyncio.timeout_at(deadline):
                said = await self._transcriber.transcribe(path, kept.kind)
        except TimeoutError:
            return replace(kept, why=kept.why or UNTOLD.format(why="it took too long"))
        except errors.FileUnavailable as error:
            return replace(kept, why=kept.why or UNTOLD.format(why=vars(error)["why"]))
        return replace(kept, said=said[:MAX_SAID_CHARACTERS])

    def is_called(self, kept: Sequence[KeptFile]) -> bool:
        """Whether somebody calls the agent by its name in what is heard."""
        heard = _words(" ".join(each.said or "" for each in kept))
        return any(_words(name) in heard for name in self.settings.spoken_names)

    def may_be_called(self, turn: Turn) -> bool:
        """Whether it has to be listened to before it can be said for whom it is."""
        listens = self._transcriber is not None and bool(self.settings.spoken_names)
        return listens and any(each.is_voice for each in turn.files)

    # What is brought before the message that it is for

    async def bring(
        self, pieces: AsyncIterator[bytes], name: str | None, kind: str | None, by: str
    ) -> KeptFile:
        """Keep a file for a message of somebody's, which comes after it. FileUnavailable says why not."""
        if self.shelf is None:
            raise errors.FileUnavailable(why=NO_PLACE)
        if self._bringing[by] >= BROUGHT_AT_ONCE:
            raise errors.TooManyUploads(why=self._bringing[by], retry_after_seconds=BRING_LATER_SECONDS)
        self._bringing[by] += 1
        try:
            shelved = await self.shelf.write(pieces, self.settings.most_bytes)
        finally:
            self._bringing[by] -= 1
            self._bringing = +self._bringing
        about = KeptFile(
            turn_id=f"f_{uuid4().hex}",
            way=FileWay.IN,
            place=0,
            session_id="",
            name=_name(name, kind or media.UNKNOWN),
            kind=_kind_said(kind, name),
            kept_at=self._clock.now(),
            brought_by=by,
        )
        kept = await self._placed(self.shelf, about, shelved)
        async with self._lock:
            if self._still_here(kept).digest is None:
                raise errors.FileUnavailable(why=LOST)
            await self._remove(
                await self._store.files.bring(kept, UNSENT_MESSAGES * self.settings.most_files)
            )
        return kept

    async def brought(self, ids: Sequence[str], by: str) -> tuple[Attachment, ...]:
        """What somebody brought, as files of the message that they send. FileUnavailable when one is not
        theirs, or no longer here."""
        if len(ids) > self.settings.most_files:
            raise errors.InvalidMessage(why=ONE_TOO_MANY.format(most=self.settings.most_files))
        if len(set(ids)) < len(ids):
            raise errors.InvalidMessage(why="it brings a file twice")
        here = {each.turn_id: each for each in await self._store.files.brought(by)} if ids else {}
        if any(each not in here for each in ids):
            raise errors.FileUnavailable(why=NOT_BROUGHT)
        named = [here[each] for each in ids]
        return tuple(
            Attachment(id=each.turn_id, name=each.name, kind=each.kind, size=each.size, digest=each.digest)
            for each in named
        )

    async def drop(self, file_id: str, by: str) -> bool:
        """Forget what somebody brought; False when there is no such file of theirs."""
        async with self._lock:
            unwanted = await self._store.files.drop(file_id, by)
            await self._remove(unwanted or set())
        return unwanted is not None

    # What goes out

    async def given(
        self, turn: Turn, session_id: str, place: int, event: events.File, working_dir: str | None
    ) -> StoredFile:
        """Keep a file that the agent gave; FileUnavailable says why it cannot be sent."""
        shelf, most = self.shelf, self.settings.most_bytes
        if shelf is None:
            raise errors.FileUnavailable(why=NO_PLACE)
        if place >= self.settings.most_files:
            raise errors.FileUnavailable(why=f"an answer may bring {self.settings.most_files} files")
        if event.data is not None:
            shelved = await shelf.write(_one(event.data), most)
        elif event.path and working_dir:
            shelved = await shelf.copy(event.path, working_dir, most)
        else:
            raise errors.FileUnavailable(why="it has neither bytes nor a path")
        named = event.name or (event.path or "").replace("\\", "/").rpartition("/")[2]
        about = KeptFile(
            turn_id=turn.id,
            way=FileWay.OUT,
            place=place,
            session_id=session_id,
            name=_name(named, event.kind or media.UNKNOWN),
            kind=_kind_said(event.kind, named),
            kept_at=self._clock.now(),
        )
        kept = await self._placed(shelf, about, shelved)
        async with self._lock:
            kept = self._still_here(kept)
            await self._store.files.keep([kept])
        if kept.digest is None:
            raise errors.FileUnavailable(why=LOST)
        return StoredFile(digest=shelved.digest, name=kept.name, kind=kept.kind, size=kept.size)

    def at_hand(self, delivery: Delivery) -> Delivery:
        """The delivery with where its files lie; one that is not here any more is named in the text."""
        here, gone = [], []
        for file in delivery.files:
            path = self.shelf.find(file.digest) if self.shelf else None
            if path is None:
                gone.append(f"[{described(file)}: it is no longer kept]")
            else:
                here.append(replace(file, path=str(path)))
        text = "\n\n".join(filter(None, (delivery.text, *gone)))
        return replace(delivery, text=text, files=tuple(here))

    # What is forgotten

    async def forget(self, session_id: str) -> None:
        """Forget the files of a session."""
        async with self._lock:
            await self._remove(await self._store.files.forget(session_id))

    async def sweep(self) -> None:
        """Forget what is old, and bytes that nobody has."""
        now = self._clock.now()
        async with self._lock:
            oldest = now - timedelta(days=self.settings.keep_days)
            await self._remove(await self._store.files.prune(oldest, now - UNSENT_KEPT))
            if self.shelf:
                stale = await self.shelf.stale(now - UNFINISHED_KEPT)
                await self._remove(await self._store.files.unwanted(stale))

    async def _remove(self, digests: set[str]) -> None:
        if self.shelf is None or not digests:
            return
        try:
            for digest in digests:
                await self.shelf.remove(digest)
        except errors.FileUnavailable as error:  # nobody has them any more: a later sweep finds them
            log.warning("files_not_removed", why=str(error))
        else:
            log.info("files_removed", files=len(digests))


def described(file: StoredFile | KeptFile) -> str:
    """A file in a few words."""
    return f"File {quoting.quote(file.name)}, {file.kind}, {file.size} bytes"


def _words(text: str) -> str:
    """The words alone, each between spaces."""
    return f" {' '.join(WORDS.findall(text.casefold()))} "


def _name(name: str | None, kind: str) -> str:
    """A file's name as nobody can be misled by it: its last part, on one line."""
    last = (name or "").replace("\\", "/").rpartition("/")[2]
    clean = quoting.one_line(last).strip(". ")
    if len(clean) > MAX_NAME_CHARACTERS:  # what it ends with tells what it is
        stem, dot, ending = clean.rpartition(".")
        keeps = bool(dot and stem) and len(ending) < MAX_NAME_CHARACTERS // 4
        clean = (
            f"{stem[: MAX_NAME_CHARACTERS - len(ending) - 1]}.{ending}"
            if keeps
            else clean[:MAX_NAME_CHARACTERS]
        )
    return clean or f"file{media.SUFFIXES.get(media.plain(kind), '')}"


def _kind_said(kind: str | None, name: str | None) -> str:
    said = media.plain(kind)
    return media.guess(name or "") if said == media.UNKNOWN else said


async def _closable(pieces: AsyncIterator[bytes]) -> Any:
    """The pieces, from something that can be closed."""
    try:
        async for piece in pieces:
            yield piece
    finally:
        if aclose := getattr(pieces, "aclose", None):
            await aclose()


async def _one(data: bytes) -> AsyncIterator[bytes]:
    yield data
