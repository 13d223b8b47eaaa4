"""Full-text search: an index that follows the transcripts, and questions to it."""

import asyncio
import math
import threading
from functools import partial
from typing import Any

import msgspec

from frontdesk import errors
from frontdesk.contracts.bells import Topic
from frontdesk.contracts.store import Engine, Row, Work
from frontdesk.formats.snippets import snippet
from frontdesk.logs import get_logger
from frontdesk.model.keys import is_safe_session_id
from frontdesk.model.lists import LISTED_CHARACTERS
from frontdesk.model.messages import ROLES, Plain, text_of
from frontdesk.model.people import Viewer
from frontdesk.model.searches import MAX_HITS, Hit, Search
from frontdesk.stores.beginnings import SHORT_BYTES, beginning
from frontdesk.stores.columns import from_micros, read_bodies, read_body, to_micros
from frontdesk.stores.dialects import DIALECTS, Dialect
from frontdesk.stores.work import EVER, Noun, glances, reads, value, writes, writes_lazily

log = get_logger(__name__)

BEGINNING = 0
BUSY_SHARE = 4
"""While others write, this part of a slice is indexed at once."""
REST = 2
"""So many times as long as a slice took nothing is indexed after it, while others write."""
WAIT_SECONDS = 0.002
"""For somebody else's slice."""
SESSION_ROWS = 50
INDEXED_CHARACTERS = 500_000
MAX_AROUND = 20

SAMPLES = 32
SAMPLED_FROM_ROWS = 5_000
LEAST_SHARE = 0.1
SPARE_CANDIDATES = 2
FEW = 256
"""So many matches are ranked sooner than a reader is woken."""
SPARE_MATCHES = 5
LARGEST = 2**31 - 1
"""No message has more bytes."""

Found = tuple[Row, Plain | None]
"""What a query gave of a message, and the message."""


class Behind(msgspec.Struct, frozen=True):
    """The index lacks messages up to this goal."""

    goal: int


class Batch(msgspec.Struct, frozen=True):
    """What a part of catching up did."""

    rows: int
    complete: bool


class Index(Noun):
    def __init__(self, engine: Engine) -> None:
        super().__init__(engine)
        self._indexing = threading.Lock()  # several event loops may share the store

    async def search(self, viewer: Viewer, search: Search) -> list[Hit]:
        """The best matches among everything committed before the call."""
        if not search.terms:
            raise errors.InvalidQuery(query="", why="there is no word in it")
        if _is_one_word(search):
            looked = await self._engine.try_glance(partial(_few, viewer, search))
            if looked and looked[0] is not None:
                return looked[0]
        goal: int | None = None
        while True:
            found = await self._search(viewer, search, goal)
            if not isinstance(found, Behind):
                return found
            goal = found.goal
            try:
                await self._follow(goal)
            except errors.StoreFull as error:
                log.warning("search_without_the_newest", why=str(error))
                goal = BEGINNING

    async def catch_up(self, limit: int) -> int:
        """Index messages not yet indexed; how many there were."""
        return (await self._catch_up(EVER, max(1, limit))).rows

    async def follow(self) -> None:
        """Index what is missing, unless another node is at it."""
        if await self.is_behind():
            await self._follow(EVER, waits=False)

    async def rebuild(self) -> None:
        await self._clear()
        await self._follow(EVER)

    async def _follow(self, goal: int, *, waits: bool = True) -> None:
        """Index everything up to the goal, in slices that nobody notices: one is a small transaction, and
        while others write most of the time is theirs."""
        bell, time = self._engine.bells.listen(Topic.FEED), asyncio.get_running_loop().time
        share = BUSY_SHARE
        try:
            while True:
                began = time()
                if (await self._index_slice(goal, waits, share)).complete:
                    return
                share = BUSY_SHARE if await bell.wait(0) else 1
                if share > 1:
                    await asyncio.sleep(REST * (time() - began))
        finally:
            bell.silence()

    async def _index_slice(self, goal: int, waits: bool, share: int) -> Batch:
        """One slice at a time: whoever else wants one here has it after this."""
        if not self._indexing.acquire(blocking=False):
            if waits:
                await asyncio.sleep(WAIT_SECONDS)
            return Batch(0, complete=not waits)
        try:
            return await self._catch_up(goal, waits=waits, share=share)
        finally:
            self._indexing.release()

    @glances
    def is_behind(self) -> Work[bool]:
        """Whether it lacks messages."""
        ((_, _, behind, _),) = yield "index_state", {"goal": None}
        return bool(behind)

    @reads
    def _search(self, viewer: Viewer, search: Search, goal: int | None) -> Work[list[Hit] | Behind]:
        ((name, goal, behind, newest),) = yield "index_state", {"goal": goal}
        if behind:
            return Behind(goal)
        if not viewer.administrator and not viewer.owners:
            return []
        seqs = yield from _best(DIALECTS[name], viewer, search, newest)
        around = min(max(search.around, 0), MAX_AROUND)
        excerpts = yield "excerpts", {"seqs": seqs, "around": around, "most_bytes": _most_bytes(search)}
        return (yield from _hits(seqs, excerpts, search))

    @writes_lazily
    def _catch_up(
        self, goal: int, most: int | None = None, *, waits: bool = True, share: int = 1
    ) -> Work[Batch]:
        locked = yield from _lock(waits=waits)
        if locked is None:
            return Batch(0, complete=True)
        dialect, up_to, ceiling = locked
        limit = min(most or dialect.rows_at_once, dialect.rows_at_once // share)
        if up_to > ceiling:
            yield "restart_index", {}
        ((waiting, size),) = yield "backlog", {"goal": goal, "limit": limit}
        batch = yield (
            "unindexed",
            {"goal": goal, "limit": _fitting(waiting, size, dialect.bytes_at_once // share)},
        )
        yield from _insert(dialect, batch)
        complete = len(batch) == waiting < limit
        mark = min(goal if complete else batch[-1][3], ceiling)
        if mark > up_to or up_to > ceiling:
            yield "advance_index", {"mark": mark}
        return Batch(len(batch), complete)

    @writes
    def _clear(self) -> Work[None]:
        yield from _lock()
        yield "clear_words", {}
        yield "restart_index", {}


def reindex_session(session_id: str) -> Work[None]:
    """Index a session's messages again, after it was given to another owner in the same transaction."""
    locked = yield from _lock()
    assert locked, "it was waited for"
    after = -1
    while batch := (yield "session_texts", {"session_id": session_id, "after": after, "limit": SESSION_ROWS}):
        yield from _insert(locked[0], batch)
        after = batch[-1][3]


def _lock(*, waits: bool = True) -> Work[tuple[Dialect, int, int] | None]:
    """Keep other nodes from the index; how far it is, and how far it can get now. None when another node has
    it, and that is not waited for."""
    for name, up_to, ceiling in (yield "lock_index", {"waits": int(waits)}):
        return DIALECTS[name], up_to, ceiling
    return None


def _fitting(waiting: int, size: int, most: int) -> int:
    """How many messages to take at once, when all that wait have this size, and no more may be taken."""
    return waiting if size <= most else max(1, waiting * most // size)


def _insert(dialect: Dialect, batch: list[Row]) -> Work[None]:
    if batch:
        texts = _texts(batch)
        documents = [
            (each[0], *dialect.document(each[1], text)) for each, text in zip(batch, texts, strict=True)
        ]
        yield dialect.insertion(documents)


def _texts(batch: list[Row]) -> list[str]:
    """The messages' texts; of one that cannot be read, none."""
    messages = read_bodies([each[2] for each in batch])
    return [text_of(message or {})[:INDEXED_CHARACTERS] for message in messages]


def _is_one_word(search: Search) -> bool:
    """Whether it can be told soon how many matches there are. Of several words that stand side by side, or of
    a beginning, that may take as long as to find them all."""
    return len(search.terms) == 1 and len(search.terms[0].words) == 1 and not search.terms[0].prefix


def _few(viewer: Viewer, search: Search) -> Work[list[Hit] | None]:
    """The best matches where there are but a few, among the messages of all owners; None when there are more,
    the index is behind, or a long message is to be read for its snippet alone."""
    ((name, _, behind, _),) = yield "index_state", {"goal": None}
    if behind:
        return None
    match, filters = DIALECTS[name].match(search.terms), _filters(viewer, search)
    matches = yield from value("count_matches", match=match, limit=FEW)
    if matches == FEW:
        return None
    is_open = viewer.administrator and not _is_filtered(viewer, search)
    wanted = filters["limit"] + SPARE_MATCHES if is_open else FEW
    most = {"most_bytes": _most_bytes(search)}
    excerpts = yield "best_excerpts", {"match": match, "candidates": wanted, **filters, **most}
    if not search.whole and any(_is_cut(excerpt) for excerpt in excerpts):
        return None
    if len(excerpts) < filters["limit"] and wanted < matches:
        return None
    seqs = [excerpt[0] for excerpt in excerpts]
    if search.around > 0:
        excerpts = yield "excerpts", {"seqs": seqs, "around": min(search.around, MAX_AROUND), **most}
    return (yield from _hits(seqs, excerpts, search))


def _best(dialect: Dialect, viewer: Viewer, search: Search, newest: int) -> Work[list[int]]:
    """The best matches that the viewer may see and the filters let through, the best first.

    Ranking costs most: candidates are ranked without a look at the messages, then looked at. Among the
    messages of all owners when many of them pass, else among the viewer's own. When too few pass, or few can
    be expected to, every match is looked at and ranked.
    """
    filters = _filters(viewer, search)
    match = dialect.match(search.terms)
    scoped = match if viewer.administrator else dialect.match(search.terms, viewer.owners)
    limit = filters["limit"]
    filtered = _is_filtered(viewer, search)
    share = 1.0 if viewer.administrator and not filtered else (yield from _share(filters, newest))
    if share >= LEAST_SHARE or not filtered:
        among = match if share >= LEAST_SHARE else scoped
        wanted = math.ceil(SPARE_CANDIDATES * limit / max(share, LEAST_SHARE))
        found = yield "best_matches", {"match": match, "among": among, "limit": wanted}
        passed = yield "visible", {"seqs": [seq for (seq,) in found], **filters}
        if len(passed) == limit or len(found) < wanted:
            return [seq for (seq,) in passed]
    found = yield "all_matches", {"match": match, "among": scoped, **filters}
    return [seq for (seq,) in found]


def _share(filters: dict[str, Any], newest: int) -> Work[float]:
    """Which part of all messages passes the filters, by a sample; 0 when there are too few to matter."""
    if newest < SAMPLED_FROM_ROWS:
        return 0.0
    sample = [newest * (2 * number + 1) // (2 * SAMPLES) for number in range(SAMPLES)]
    passed = yield "visible", {"seqs": sample, **filters | {"limit": SAMPLES}}
    return len(passed) / SAMPLES


def _filters(viewer: Viewer, search: Search) -> dict[str, Any]:
    return {
        "everything": int(viewer.administrator),
        "owners": sorted(viewer.owners),
        "chat": viewer.chat,
        "role": None if search.role is None else str(search.role),
        "platform": search.platform,
        "since": to_micros(search.since) if search.since else -EVER,
        "until": to_micros(search.until) if search.until else EVER,
        "limit": min(max(search.limit, 1), MAX_HITS),
    }


def _is_filtered(viewer: Viewer, search: Search) -> bool:
    asked = (viewer.chat, search.role, search.platform, search.since, search.until)
    return any(each is not None for each in asked)


def _most_bytes(search: Search) -> int:
    """So much is read of each message; of one that is cut, a byte more than a short one has."""
    return LARGEST if search.whole else SHORT_BYTES + 1


def _is_cut(excerpt: Row) -> bool:
    return len(excerpt[-1]) > SHORT_BYTES


def _hits(seqs: list[int], excerpts: list[Row], search: Search) -> Work[list[Hit]]:
    around: dict[int, list[Found]] = {seq: [] for seq in seqs}
    for excerpt, message in zip(excerpts, _messages(excerpts, search), strict=True):
        around[excerpt[0]].append((excerpt, message))
    hits: list[Hit] = []
    for seq, found in around.items():
        if found and (hit := (yield from _hit(seq, found, search))):
            hits.append(hit)
    return hits


def _messages(excerpts: list[Row], search: Search) -> list[Plain | None]:
    """What was said, in the order of the excerpts; of what is cut, the beginning of its text."""
    if search.whole:
        return read_bodies([excerpt[-1] for excerpt in excerpts])
    read = read_bodies([b"{}" if _is_cut(excerpt) else excerpt[-1] for excerpt in excerpts])
    return [
        _short(each, beginning(bytes(each[-1]))) if _is_cut(each) else message
        for each, message in zip(excerpts, read, strict=True)
    ]


def _short(excerpt: Row, message: Plain | None) -> Plain:
    return {"role": excerpt[4], "content": text_of(message or {})[:LISTED_CHARACTERS]}


def _hit(seq: int, found: list[Found], search: Search) -> Work[Hit | None]:
    """The hit among the messages around it, None when it cannot be read."""
    if len(found) > 1:
        found.sort(key=_position_of)
    at = next(place for place, (excerpt, _) in enumerate(found) if excerpt[1] == seq)
    excerpt, message = found[at]
    _, _, session_id, position, role, created_at, _ = excerpt
    text = text_of(message or {})
    if not search.whole and _is_cut(excerpt):
        # Its words may stand anywhere. One is read after the other, so that one alone is held.
        whole = read_body((yield from value("body_of_message", seq=seq)), session=session_id)
        text, message = text_of(whole or {}), whole and _short(excerpt, whole)
    if message is None or role not in ROLES or not is_safe_session_id(session_id):
        return None
    return Hit(
        session_id=session_id,
        position=position,
        role=ROLES[role],
        message=message,
        created_at=from_micros(created_at),
        before=[each for _, each in found[:at] if each is not None],
        after=[each for _, each in found[at + 1 :] if each is not None],
        snippet=snippet(text, search.terms),
        is_whole=search.whole or not any(_is_cut(each) for each, _ in found),
    )


def _position_of(found: Found) -> int:
    """A message's place in its transcript."""
    return int(found[0][3])
