"""Sessions by words in their titles and in the names of their chats. The words follow the sessions, like the
search index: storing a message does not touch them."""

import asyncio
from collections.abc import Iterable, Sequence

import msgspec

from frontdesk.contracts.store import Work
from frontdesk.formats import words
from frontdesk.model.lists import ListedSession, SessionFilter
from frontdesk.model.people import Viewer
from frontdesk.model.sources import NAMES
from frontdesk.stores.columns import UNREADABLE
from frontdesk.stores.lists.overview import filter_values, listed
from frontdesk.stores.rows import SESSIONS
from frontdesk.stores.work import Noun, glances, reads, writes_lazily

SLICE, REST = 50, 2
"""So many are looked up in one transaction; after it for so many times as long nothing is."""
BATCH = 500
MOST_BATCHES = 20
"""Before an answer: after an upgrade the rest follows in quiet moments."""
MOST_CANDIDATES = 2_000
MOST_WORDS = 40
MOST_CHARACTERS = 64
NAME_CHARACTERS = 1_000
SHORTEST_BEGINNING = 2
LAST = "\U0010ffff"


class NamedDetails(msgspec.Struct, frozen=True):
    """The names among what no query looks at."""

    origin: dict[str, object] | None = None
    display_name: str | None = None


_read = msgspec.json.Decoder(NamedDetails).decode


class NameLists(Noun):
    async def named(
        self, viewer: Viewer, wanted: SessionFilter, asked: Sequence[str], limit: int
    ) -> list[ListedSession]:
        """Sessions in whose title, or the names of whose chat, there are words that begin like these; latest
        activity first."""
        for _ in range(MOST_BATCHES):
            if not await self._waits() or await self.follow_names(BATCH) < BATCH:
                break
        return await self._named(viewer, wanted, asked, limit)

    async def follow_all_names(self) -> None:
        """Look up all names that are missing, in small transactions with rests, like the search index."""
        time = asyncio.get_running_loop().time
        while await self._waits():
            began = time()
            if not await self.follow_names(SLICE):  # another node is at it
                return
            await asyncio.sleep(REST * (time() - began))

    @glances
    def _waits(self) -> Work[bool]:
        return bool((yield "any_unnamed", {}))

    @writes_lazily
    def follow_names(self, limit: int) -> Work[int]:
        """Look up the names of sessions that are new or have other ones; of how many."""
        found = yield "unnamed_sessions", {"limit": limit}
        ids = [each[0] for each in found]
        rows = [
            (name, word, owner)
            for name, owner, title, details in found
            for word in _words([title, *_names(bytes(details))])
        ]
        if ids:
            yield "forget_names", {"ids": ids}
            yield "insert_names", {"rows": msgspec.json.encode(rows).decode()}
            yield "mark_named", {"ids": ids}
        return len(ids)

    @reads
    def _named(
        self, viewer: Viewer, wanted: SessionFilter, asked: Sequence[str], limit: int
    ) -> Work[list[ListedSession]]:
        first, *others = sorted({_between(word) for word in asked}, key=lambda each: -len(each[0]))
        values = filter_values(viewer, wanted) | {
            "low": first[0],
            "high": first[1],
            "others": msgspec.json.encode(others).decode(),
            "most": MOST_CANDIDATES,
            "limit": limit,
        }
        query = "named_sessions" if values["everything"] else "named_sessions_of_owners"
        return (yield from listed((yield from SESSIONS.many(query, **values))))

    @reads
    def these(self, viewer: Viewer, session_ids: Sequence[str]) -> Work[list[ListedSession]]:
        """Those of these sessions that the viewer may see, as a list shows them."""
        found = yield from SESSIONS.many("sessions_by_id", ids=list(session_ids))
        return (yield from listed([each for each in found if viewer.shows(each)]))

    @reads
    def of_turns(self, viewer: Viewer, turn_ids: Sequence[str]) -> Work[dict[str, ListedSession]]:
        """The sessions in which these turns run, those that the viewer may see, by turn."""
        running: dict[str, str] = dict((yield "sessions_of_turns", {"ids": list(turn_ids)}))
        found = yield from SESSIONS.many("sessions_by_id", ids=sorted(set(running.values())))
        shown = yield from listed([each for each in found if viewer.shows(each)])
        known = {each.session.id: each for each in shown}
        return {turn: known[name] for turn, name in running.items() if name in known}


def _between(word: str) -> tuple[str, str]:
    """Where words stand that begin like this one; of a very short one, itself alone."""
    cut = word[:MOST_CHARACTERS]
    return cut, cut + (LAST if len(word) >= SHORTEST_BEGINNING else "\x01")


def _names(details: bytes) -> list[str | None]:
    try:
        read = _read(details)
    except UNREADABLE:
        return []
    origin = read.origin or {}
    named = [origin.get(name) for name in NAMES]
    return [read.display_name, *(name for name in named if isinstance(name, str))]


def _words(names: Iterable[str | None]) -> list[str]:
    """The different words, as far as they are looked for."""
    found = [word[:MOST_CHARACTERS] for name in names if name for word in words.split(name[:NAME_CHARACTERS])]
    return list(dict.fromkeys(found))[:MOST_WORDS]
