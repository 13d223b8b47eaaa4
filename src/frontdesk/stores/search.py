"""Full-text search: an index that follows the transcripts, and questions to it."""

import math
from operator import itemgetter
from typing import Any

import msgspec

from frontdesk import errors
from frontdesk.contracts.store import Row, Work
from frontdesk.formats.snippets import snippet
from frontdesk.logs import get_logger
from frontdesk.model.keys import is_safe_session_id
from frontdesk.model.messages import ROLES, Plain, text_of
from frontdesk.model.people import Viewer
from frontdesk.model.searches import MAX_HITS, Hit, Search
from frontdesk.stores.columns import from_micros, read_bodies, read_body, to_micros
from frontdesk.stores.dialects import DIALECTS, Dialect
from frontdesk.stores.work import EVER, Noun, reads, writes, writes_lazily

log = get_logger(__name__)

BEGINNING = 0
BATCH_ROWS = 1_000
SESSION_ROWS = 50
BATCH_BYTES = 512 * 1024
INDEXED_CHARACTERS = 500_000
MAX_AROUND = 20

POSITION = 3
"""The column of ``excerpts`` with a message's place in its transcript."""

SAMPLES = 32
SAMPLED_FROM_ROWS = 5_000
LEAST_SHARE = 0.1
SPARE_CANDIDATES = 2


class Behind(msgspec.Struct, frozen=True):
    """The index lacks messages up to this goal."""

    goal: int


class Batch(msgspec.Struct, frozen=True):
    """What a part of catching up did."""

    rows: int
    complete: bool


class Index(Noun):
    async def search(self, viewer: Viewer, search: Search) -> list[Hit]:
        """The best matches among everything committed before the call."""
        if not search.terms:
            raise errors.InvalidQuery(query="", why="there is no word in it")
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

    async def rebuild(self) -> None:
        await self._clear()
        await self._follow(EVER)

    async def _follow(self, goal: int) -> None:
        """Index everything up to the goal, in small transactions: others want to write, too."""
        complete = False
        while not complete:
            complete = (await self._catch_up(goal, BATCH_ROWS)).complete

    @reads
    def _search(self, viewer: Viewer, search: Search, goal: int | None) -> Work[list[Hit] | Behind]:
        ((name, goal, behind, newest),) = yield "index_state", {"goal": goal}
        if behind:
            return Behind(goal)
        if not viewer.administrator and not viewer.owners:
            return []
        seqs = yield from _best(DIALECTS[name], viewer, search, newest)
        excerpts = yield "excerpts", {"seqs": seqs, "around": min(max(search.around, 0), MAX_AROUND)}
        return _hits(seqs, excerpts, search)

    @writes_lazily
    def _catch_up(self, goal: int, limit: int) -> Work[Batch]:
        dialect, up_to, ceiling = yield from _lock()
        if up_to > ceiling:
            yield "restart_index", {}
        ((waiting, size),) = yield "backlog", {"goal": goal, "limit": limit}
        batch = yield "unindexed", {"goal": goal, "limit": _fitting(waiting, size)}
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
    dialect, _, _ = yield from _lock()
    after = -1
    while batch := (yield "session_texts", {"session_id": session_id, "after": after, "limit": SESSION_ROWS}):
        yield from _insert(dialect, batch)
        after = batch[-1][3]


def _lock() -> Work[tuple[Dialect, int, int]]:
    """Keep other nodes from the index; how far it is, and how far it can get now."""
    ((name, up_to, ceiling),) = yield "lock_index", {}
    return DIALECTS[name], up_to, ceiling


def _fitting(waiting: int, size: int) -> int:
    """How many messages to take at once, when all that wait have this size."""
    return waiting if size <= BATCH_BYTES else max(1, waiting * BATCH_BYTES // size)


def _insert(dialect: Dialect, batch: list[Row]) -> Work[None]:
    if batch:
        texts = _texts(batch)
        documents = [
            (each[0], *dialect.document(each[1], text)) for each, text in zip(batch, texts, strict=True)
        ]
        yield "insert_words", {"rows": msgspec.json.encode(documents).decode()}


def _texts(batch: list[Row]) -> list[str]:
    """The messages' texts; of one that cannot be read, none."""
    messages = read_bodies([each[2] for each in batch])
    return [text_of(message or {})[:INDEXED_CHARACTERS] for message in messages]


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


def _hits(seqs: list[int], excerpts: list[Row], search: Search) -> list[Hit]:
    around: dict[int, list[Row]] = {seq: [] for seq in seqs}
    for excerpt in sorted(excerpts, key=itemgetter(POSITION)):
        around[excerpt[0]].append(excerpt)
    hits = [_hit(seq, found, search) for seq, found in around.items() if found]
    return [hit for hit in hits if hit is not None]


def _hit(seq: int, found: list[Row], search: Search) -> Hit | None:
    """The hit among the messages around it, None when it cannot be read."""
    at = [each[1] for each in found].index(seq)
    _, _, session_id, position, role, created_at, body = found[at]
    message = read_body(body, seq=seq)
    if message is None or role not in ROLES or not is_safe_session_id(session_id):
        return None
    return Hit(
        session_id=session_id,
        position=position,
        role=ROLES[role],
        message=message,
        created_at=from_micros(created_at),
        before=_read(found[:at]),
        after=_read(found[at + 1 :]),
        snippet=snippet(text_of(message), search.terms),
    )


def _read(found: list[Row]) -> list[Plain]:
    decoded = read_bodies([each[-1] for each in found])
    return [message for message in decoded if message is not None]
