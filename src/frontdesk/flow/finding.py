"""Looking at conversations: what a key has now; and finding them again by titles, lists and search, each
within what the asker may see."""

import asyncio
from collections.abc import Sequence
from datetime import datetime, timedelta

from msgspec.structs import replace

from frontdesk import errors
from frontdesk.contracts.bells import Topic
from frontdesk.flow.service import Service
from frontdesk.formats import words
from frontdesk.logs import get_logger
from frontdesk.model import inputs, keys, pages, routing, titles
from frontdesk.model.lists import FoundSession, ListedSession, SessionFilter, StateCounts
from frontdesk.model.messages import Role
from frontdesk.model.pages import ListPage
from frontdesk.model.people import Viewer
from frontdesk.model.reading import PAGE_ROWS, TranscriptPage
from frontdesk.model.searches import MAX_HITS, Hit, Search
from frontdesk.model.sessions import Session, SessionEntry

log = get_logger(__name__)

LIST_LIMIT = 50
GATHER_SECONDS = 0.5
"""What is said in that time is indexed together."""
LOOK_SECONDS = 60.0
"""Until another look when nobody has rung."""
MAX_AROUND = 10
MORE_THAN_ONE = 2


class Finder(Service):
    async def get_session(self, key: str) -> SessionEntry | None:
        """The key's current session, untouched."""
        session = await self._store.sessions.current(keys.asked_key(key))
        return session.entry if session else None

    async def peek_session_id(self, key: str) -> str | None:
        entry = await self.get_session(key)
        return entry.session_id if entry else None

    async def lookup_by_session_id(self, session_id: str) -> SessionEntry | None:
        session = await self._store.sessions.find(keys.asked_session_id(session_id))
        return session.entry if session else None

    async def list_sessions(
        self,
        active_minutes: float | None = None,
        *,
        limit: int | None = None,
        after: SessionEntry | None = None,
    ) -> list[SessionEntry]:
        """The keys' current sessions, newest activity first; ``after`` its last entry goes on with a list."""
        since = None
        if active_minutes is not None:
            since = inputs.ago(self._clock.now(), "active_minutes", active_minutes, timedelta(minutes=1))
        if limit is not None:
            inputs.check_limit(limit)
        found = await self._store.sessions.list_current(since=since, limit=limit, after=after)
        return [session.entry for session in found]

    async def has_any_sessions(self) -> bool:
        """Whether more than one session was ever created."""
        return await self._store.sessions.count(MORE_THAN_ONE) >= MORE_THAN_ONE

    async def get_model_override(self, key: str) -> dict[str, str] | None:
        entry = await self.get_session(key)
        return entry.model_override if entry else None

    async def get_message_count(self, key: str) -> int:
        entry = await self.get_session(key)
        return entry.message_count if entry else 0

    async def count_messages(self, session: Session) -> int:
        """How many messages a session has, those from before it was resumed included."""
        if not session.counted_from:
            return session.entry.message_count
        return await self._store.transcripts.count(session.id)

    async def set_title(self, session_id: str, title: str | None, viewer: Viewer) -> bool:
        """Name a session, None takes the name away; False when the viewer has no such session."""
        if await self.find_session(session_id, viewer) is None:
            return False
        cleaned = None if title is None else titles.clean_title(title)
        return await self._store.sessions.set_title(session_id, cleaned, self._clock.now())

    async def find_session(self, session_id: str, viewer: Viewer) -> Session | None:
        """A session by its id, when the viewer may see it."""
        inputs.check_kind("viewer", viewer, Viewer)
        session = await self._store.sessions.find(keys.asked_session_id(session_id))
        return session if session and viewer.shows(session) else None

    async def find_title(self, title: str, viewer: Viewer) -> Session | None:
        """The newest generation of the viewer's conversation with that title."""
        inputs.check_kind("viewer", viewer, Viewer)
        session = await self._store.sessions.find_title(viewer, titles.clean_title(title))
        return await self._tip(session, viewer) if session else None

    async def _tip(self, session: Session, viewer: Viewer) -> Session | None:
        """The newest generation, when the viewer may see that one, too: it may have been taken elsewhere."""
        tip = await self._store.sessions.tip(session.id)
        return tip if tip and viewer.shows(tip) else None

    async def list_own_sessions(
        self, viewer: Viewer, *, limit: int = LIST_LIMIT, titled: bool = False
    ) -> list[Session]:
        """What the viewer may resume, ended sessions included, newest activity first."""
        inputs.check_kind("viewer", viewer, Viewer)
        inputs.check_limit(limit)
        return await self._store.sessions.list_owned(viewer, limit=limit, titled=titled)

    async def list_page(
        self, viewer: Viewer, wanted: SessionFilter, *, limit: int = LIST_LIMIT, after: str | None = None
    ) -> ListPage[ListedSession]:
        """Some of the sessions that the viewer may see, with all that a list shows of them."""
        inputs.check_kind("viewer", viewer, Viewer)
        page = await self._store.lists.sessions(viewer, wanted, limit, after)
        return replace(page, items=list(map(self._with_settings, page.items)))

    async def list_these(self, session_ids: Sequence[str], viewer: Viewer) -> list[ListedSession]:
        """Those of these sessions that the viewer may see, with all that a list shows of them."""
        inputs.check_kind("viewer", viewer, Viewer)
        shown = await self._store.lists.these(viewer, list(map(keys.asked_session_id, session_ids)))
        return list(map(self._with_settings, shown))

    async def find_sessions(
        self, query: str, viewer: Viewer, *, platform: str | None = None, limit: int = LIST_LIMIT
    ) -> list[FoundSession]:
        """Sessions with all these words: first those whose title or chat is called so, latest activity first,
        then those in which they were said, the best first."""
        most = pages.check_items(limit)
        hits = await self.find_messages(query, viewer, platform=platform, limit=MAX_HITS, around=0)
        asked = [word for term in words.parse(query) for word in term.words]
        named = await self._store.lists.named(viewer, SessionFilter(platform=platform), asked, most)
        found = [FoundSession(listed=self._with_settings(each)) for each in named]
        known = {each.session.id for each in named}
        best = {hit.session_id: hit for hit in reversed(hits) if hit.session_id not in known}
        order = [name for name in dict.fromkeys(hit.session_id for hit in hits) if name in best]
        said = await self.list_these(order[: most - len(found)], viewer) if len(found) < most else []
        return [*found, *(FoundSession(listed=each, hit=best[each.session.id]) for each in said)]

    def _with_settings(self, listed: ListedSession) -> ListedSession:
        entry = listed.session.entry
        profile = self._config.profile_of(entry.origin)[0] if entry.origin else None
        limit = self.policy_for(entry).max_messages
        return replace(listed, message_limit=limit, profile=routing.named(profile) or routing.DEFAULT)

    async def count_states(self, viewer: Viewer, wanted: SessionFilter) -> StateCounts:
        """How many sessions there are for each choice of states, counting no further than some."""
        inputs.check_kind("viewer", viewer, Viewer)
        return await self._store.lists.counts(viewer, wanted)

    async def read_page(
        self,
        session_id: str,
        viewer: Viewer,
        *,
        limit: int = PAGE_ROWS,
        before: str | None = None,
        after: str | None = None,
    ) -> TranscriptPage | None:
        """The newest rows of a session and of those that it continues, or those before or after a place that
        a page gave; None when the viewer has no such session."""
        inputs.check_kind("viewer", viewer, Viewer)
        name = keys.asked_session_id(session_id)
        return await self._store.lists.transcript(viewer, name, limit, before=before, after=after)

    async def follow_lineage(self, session_id: str, viewer: Viewer) -> Session | None:
        """The newest session that continues this one after compressions."""
        session = await self.find_session(session_id, viewer)
        return await self._tip(session, viewer) if session else None

    async def search(
        self,
        query: str,
        viewer: Viewer,
        *,
        role: str | None = None,
        platform: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        limit: int = 20,
        around: int = 1,
    ) -> list[Hit]:
        """Messages with all these words, "phrases" and begin*, the best first."""
        inputs.check_kind("viewer", viewer, Viewer)
        inputs.check_kind("query", query, str)
        inputs.check_kind("platform", platform, str, type(None))
        inputs.check_kind("around", around, int)
        inputs.check_time("since", since)
        inputs.check_time("until", until)
        search = Search(
            terms=words.parse(query),
            role=_role(role, query),
            platform=platform,
            since=since,
            until=until,
            limit=max(1, min(inputs.check_limit(limit), MAX_HITS)),
            around=max(0, min(around, MAX_AROUND)),
        )
        return await self._store.index.search(viewer, search)

    async def find_messages(
        self, query: str, viewer: Viewer, *, platform: str | None = None, limit: int = 20, around: int = 1
    ) -> list[Hit]:
        """The same for whoever chooses among them: of long messages the beginning of their text."""
        inputs.check_kind("viewer", viewer, Viewer)
        inputs.check_kind("query", query, str)
        most = max(1, min(inputs.check_limit(limit), MAX_HITS))
        search = Search(terms=words.parse(query), platform=platform, limit=most, around=around, whole=False)
        return await self._store.index.search(viewer, search)

    async def index_when_quiet(self) -> None:
        """Keep the search index near the transcripts, whoever writes them, a little at a time between what
        else is to be done. Never ends."""
        bell = self._store.bells.listen(Topic.FEED)
        try:
            while True:
                await asyncio.sleep(GATHER_SECONDS)
                try:
                    await self._store.index.follow()
                    await self._store.lists.follow_all_names()
                except errors.StoreError as error:
                    log.warning("indexing_failed", error=str(error))
                await bell.wait(LOOK_SECONDS)
        finally:
            bell.silence()

    async def rebuild_index(self) -> None:
        """Make the search index anew from the transcripts."""
        await self._store.index.rebuild()


def _role(role: str | None, query: str) -> Role | None:
    if role is None:
        return None
    try:
        return Role(role)
    except ValueError:
        raise errors.InvalidQuery(query=query, why=f"no role {role!r}; roles: {', '.join(Role)}") from None
