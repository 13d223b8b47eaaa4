"""What is asked about many conversations: which there are, and what becomes of each."""

from collections.abc import AsyncIterator, Sequence
from datetime import datetime
from typing import Annotated, TypedDict

import msgspec

from frontdesk import errors
from frontdesk.app.office.counters import LIST_LIMIT, Counter
from frontdesk.app.office.plain import WHERE_CHARACTERS, among, chosen, where_of
from frontdesk.formats import quoting
from frontdesk.formats.words import split as split_words
from frontdesk.model import pages
from frontdesk.model.lists import (
    LastWords,
    ListedSession,
    ListedStates,
    SessionFilter,
    SessionState,
    TroubleKind,
    chat_name_of,
    is_nameless,
)
from frontdesk.model.people import Viewer, place_of_name
from frontdesk.model.platforms import Platform
from frontdesk.model.sessions import Session
from frontdesk.model.visitors import names_here

NAME_CHARACTERS = 100
MOST_GENERATIONS = 10
MOST_NAMED = 100
MOST_WORDS = 8


class SessionPreview(TypedDict):
    """What was said last, or, where words are looked for, where they were said."""

    role: str
    text: str
    at: str
    calls_tools: bool
    number: int | None
    """Of the message with the words that were looked for."""


class SessionRow(TypedDict):
    """A session as a list shows it."""

    id: str
    key: str
    owner: str
    title: str | None
    name: str
    """Of its chat, on one line; where chats have none, its title or its first words, or those of the session
    that it goes on from, if there are any."""
    person: str
    """Who writes in it, or was the first to."""
    where: str
    platform: str
    profile: str | None
    account: str | None
    chat_type: str
    state: str
    """Just now: working, waiting for a person, queued, in trouble, idle or ended."""
    since: str | None
    """When the turn that runs began, or the first that waits came."""
    queued: int
    trouble: str | None
    trouble_reason: str | None
    preview: SessionPreview | None
    messages: int
    message_limit: int
    """0 where there is none."""
    root: str
    """The first of its lineage."""
    parent_id: str | None
    relation: str | None
    created_at: str
    updated_at: str
    ended_at: str | None
    end_reason: str | None


class LineageStep(TypedDict):
    """A session that another one comes from, or that comes from it."""

    id: str
    messages: int
    relation: str | None
    created_at: str
    ended_at: str | None
    end_reason: str | None
    begun_by: str | None
    """Who had it begin by hand."""
    resumed_at: str | None
    """When somebody last went on with it after it had ended."""
    resumed_by: str | None
    resumed_from: int
    """The number of the first message that was said since."""


class SessionCounts(TypedDict):
    """How many sessions there are, by what becomes of them; counted no further than ``at_most``."""

    all: int
    working: int
    waiting: int
    trouble: int
    ended: int
    at_most: int


class SessionFacts(SessionRow):
    """All that is known of a session, besides what was said in it."""

    shared: bool
    """Whether several people write in it."""
    model: str | None
    """The one that was chosen for it."""
    limits: list[str]
    """What it has used of each limit, in words."""
    input_tokens: int
    output_tokens: int
    cost_usd: float
    lineage: list[LineageStep]
    """The sessions that it goes on from, newest first, itself included."""
    current_id: str | None
    """The session that the conversation is in by now; none where that was forgotten."""


class SessionList(TypedDict):
    """Sessions, the latest activity first; ``next`` is where the others are."""

    items: list[SessionRow]
    next: str | None


FOUND_STATES = {
    ListedStates.WORKING: {SessionState.WORKING, SessionState.QUEUED},
    ListedStates.WAITING: {SessionState.WAITING},
    ListedStates.TROUBLE: {SessionState.TROUBLE},
    ListedStates.ENDED: {SessionState.ENDED},
}


class ListCounter(Counter):
    async def browse_sessions(
        self,
        states: Annotated[str, among(ListedStates)] = ListedStates.ALL,
        platform: str | None = None,
        person: str | None = None,
        words: str | None = None,
        after: str | None = None,
        limit: int = LIST_LIMIT,
    ) -> SessionList:
        """Some of the sessions, the latest activity first; those with words in them, the best first.

        A person is named by words of what lists call them, by an id, or by all of it: ``telegram:7``. What
        they said on the page, over HTTP and by linked names is theirs, too. Words find the best 200 sessions.
        """
        wanted = SessionFilter(platform=_known(platform), states=chosen("states", ListedStates, states))
        viewer = await self._seeing(person)
        if words and words.strip():
            begin, most = max(0, pages.read_place(after, 0)[0]), pages.check_items(limit)
            found, goes_on = pages.cut((await self._found(words, viewer, wanted))[begin:], most)
            return {"items": found, "next": pages.place(begin + most) if goes_on else None}
        page = await self._conversations.list_page(viewer, wanted, limit=limit, after=after)
        return {"items": [self._listed(each) for each in page.items], "next": page.next}

    async def count_states(self, platform: str | None = None, person: str | None = None) -> SessionCounts:
        """How many sessions there are in each of the states that can be asked for."""
        counts = await self._conversations.count_states(
            await self._seeing(person), SessionFilter(platform=_known(platform))
        )
        return SessionCounts(
            all=counts.all,
            working=counts.working,
            waiting=counts.waiting,
            trouble=counts.trouble,
            ended=counts.ended,
            at_most=counts.at_most,
        )

    async def _seeing(self, person: str | None) -> Viewer:
        """What is seen here, of a person alone where one is named, by all their names."""
        if person is None:
            return self._viewer
        is_id = ":" in person and Platform.parse(place_of_name(person).partition("@")[0]) is not None
        named = {person} if is_id else {f"{platform}:{person}" for platform in Platform.known()}
        named |= set() if is_id else {person, *(await self._called(person))}
        persons = self._gateway.parts.confirmations.settings.persons if self._gateway else ()
        known = await self._store.people.behind(named, persons, self._clock.now())
        named = named.union(*map(names_here, known.names))
        return Viewer(frozenset(each for each in named if self._viewer.sees(each)), chat=self._viewer.chat)

    async def _called(self, name: str) -> set[str]:
        """Whose sessions are of somebody with these words, whole ones, in their name; as far as so many
        sessions tell."""
        asked = split_words(name)[:MOST_WORDS]
        if not asked:
            return set()
        found = await self._store.lists.named(self._viewer, SessionFilter(), asked, MOST_NAMED)
        return {each.session.owner for each in found if _is_called(each.session, asked)}

    async def _found(self, words: str, viewer: Viewer, wanted: SessionFilter) -> list[SessionRow]:
        """The sessions that are called like these words, or in which they were said, which is shown in
        the place of the last words."""
        rows = []
        for found in await self._conversations.find_sessions(
            words, viewer, platform=wanted.platform, limit=pages.MOST_ITEMS
        ):
            listed, hit = found.listed, found.hit
            if hit:
                last = LastWords(role=hit.role, text=quoting.one_line(hit.snippet), at=hit.created_at)
                listed = msgspec.structs.replace(listed, last=last)
            if listed.state in FOUND_STATES.get(wanted.states, {listed.state}):
                row = self._listed(listed)
                if hit and row["preview"]:
                    row["preview"]["number"] = hit.position + 1
                rows.append(row)
        return rows

    def _listed(self, listed: ListedSession) -> SessionRow:
        """A row of the list. Why a turn was set aside may be anything that an agent wrote."""
        row = _row(listed)
        if row["trouble"] == TroubleKind.SET_ASIDE and not self._sees_everything:
            row["trouble_reason"] = None
        return row

    async def describe_session(self, session_id: str) -> SessionFacts:
        """All that is known of a session, besides what was said in it."""
        session = await self._find(session_id)
        (listed,) = await self._conversations.list_these([session.id], self._viewer)
        entry, origin = session.entry, session.entry.origin
        gauges = self._conversations.policy_for(entry).gauges(session.as_limited(), self._clock.now())
        return SessionFacts(
            **self._listed(listed),
            shared=origin is not None and self._conversations.is_shared(origin),
            model=(entry.model_override or {}).get("model"),
            limits=[str(gauge) for gauge in gauges],
            input_tokens=entry.input_tokens,
            output_tokens=entry.output_tokens,
            cost_usd=entry.estimated_cost_usd,
            lineage=[lineage_step(each) async for each in self._ancestors(session)],
            current_id=await self._current(session),
        )

    async def sessions_of(self, turn_ids: Sequence[str]) -> dict[str, SessionRow]:
        """The sessions in which these turns run, by turn."""
        found = await self._store.lists.of_turns(self._viewer, turn_ids) if turn_ids else {}
        return {turn_id: self._listed(each) for turn_id, each in found.items()}

    async def _ancestors(self, session: Session) -> AsyncIterator[Session]:
        """The session, and those before it that are seen here."""
        at: Session | None = session
        for _ in range(MOST_GENERATIONS):
            if at is None:
                return
            yield at
            at = await self._conversations.find_session(at.parent_id, self._viewer) if at.parent_id else None

    async def _current(self, session: Session) -> str | None:
        """The session that the conversation is in by now, where that is seen here; none after a forgotten
        one, with which nobody can go on."""
        current = await self._store.sessions.current(session.entry.session_key)
        is_shown = current and self._viewer.shows(current) and not current.is_forgotten
        return current.id if current and is_shown else None

    async def newest_of(self, session_id: str) -> str:
        """The session that continues this one after compressions; itself where none does."""
        session = await self._find(session_id)
        tip = await self._conversations.follow_lineage(session.id, self._viewer)
        return tip.id if tip else session.id


def _known(platform: str | None) -> str | None:
    """The platform that is named; InvalidInput when there is none of that name."""
    if platform is None or platform in Platform.known():
        return platform
    raise errors.InvalidInput(what=f"platform {platform!r}", why=f"there is {', '.join(Platform.known())}")


def _is_called(session: Session, asked: Sequence[str]) -> bool:
    origin = session.entry.origin
    return set(asked) <= set(split_words((origin and origin.user_name) or ""))


def lineage_step(session: Session) -> LineageStep:
    return LineageStep(
        id=session.id,
        messages=session.entry.message_count,
        relation=session.relation and str(session.relation),
        created_at=session.entry.created_at.isoformat(),
        ended_at=_time(session.ended_at),
        end_reason=session.end_reason,
        begun_by=session.begun_by,
        resumed_at=_time(session.renewal.at) if session.renewal else None,
        resumed_by=session.resumed_by,
        resumed_from=session.counted_from + 1,
    )


def _row(listed: ListedSession) -> SessionRow:
    session, last, trouble = listed.session, listed.last, listed.trouble
    entry, origin = session.entry, session.entry.origin
    person = (origin and (quoting.one_line(origin.user_name or "") or origin.user_id)) or ""
    name = quoting.one_line(_name(listed), NAME_CHARACTERS)
    where = quoting.one_line(where_of(origin) if origin else entry.session_key, WHERE_CHARACTERS)
    return SessionRow(
        id=session.id,
        key=entry.session_key,
        owner=session.owner,
        title=session.title and quoting.one_line(session.title, NAME_CHARACTERS),
        name=name if name or is_nameless(entry) else where,
        person=quoting.one_line(person, NAME_CHARACTERS),
        where=where,
        platform=str(entry.platform or ""),
        profile=listed.profile,
        account=origin.account if origin else None,
        chat_type=str(entry.chat_type),
        state=str(listed.state),
        since=_time(listed.since),
        queued=listed.queued,
        trouble=str(trouble.kind) if trouble else None,
        trouble_reason=trouble.why if trouble else None,
        preview=_preview(last) if last else None,
        messages=entry.message_count,
        message_limit=listed.message_limit,
        root=listed.root,
        parent_id=session.parent_id,
        relation=session.relation and str(session.relation),
        created_at=entry.created_at.isoformat(),
        updated_at=entry.updated_at.isoformat(),
        ended_at=_time(session.ended_at),
        end_reason=session.end_reason,
    )


def _name(listed: ListedSession) -> str:
    """What tells it from others."""
    entry = listed.session.entry
    if is_nameless(entry):
        return listed.called or ""
    return chat_name_of(entry) or (entry.origin.user_name if entry.origin else None) or ""


def _preview(last: LastWords) -> SessionPreview:
    return SessionPreview(
        role=last.role, text=last.text, at=last.at.isoformat(), calls_tools=last.calls_tools, number=None
    )


def _time(moment: datetime | None) -> str | None:
    return moment.isoformat() if moment else None
