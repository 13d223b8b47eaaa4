"""What is asked about conversations."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from datetime import datetime, timedelta
from typing import Annotated, Any, TypedDict, cast

import msgspec

from frontdesk.app.office.counters import LIST_LIMIT, Counter
from frontdesk.app.office.plain import Plain, among, chosen, picked, plain
from frontdesk.contracts.channels import Capabilities, capabilities_in
from frontdesk.formats import exports
from frontdesk.model import background, inputs
from frontdesk.model.sessions import Session
from frontdesk.model.sources import SessionSource

SEARCH_LIMIT = 20
MINUTE = timedelta(minutes=1)


class FoundMessage(TypedDict):
    """A message in which words were found, with one before and one after it."""

    session_id: str
    position: int
    role: str
    message: dict[str, Any]
    created_at: str
    before: list[dict[str, Any]]
    after: list[dict[str, Any]]
    snippet: str
    """The part of it in which the words stand."""
    is_whole: bool
    """Whether these messages are as they are stored."""


class StoredSession(TypedDict):
    """A session as it is stored, with what was said in it."""

    id: str
    key: str
    owner: str
    title: str | None
    platform: str
    chat_type: str
    account: str | None
    chat_id: str | None
    where: str
    state: str
    end_reason: str | None
    suspended: bool
    resume_pending: bool
    """Whether a turn that was cut off goes on in it."""
    parent_id: str | None
    relation: str | None
    messages: int
    input_tokens: int
    output_tokens: int
    cost_usd: float
    created_at: str
    updated_at: str
    ended_at: str | None
    transcript: list[dict[str, Any]]
    is_whole: bool
    """Whether that is all that was said."""


class SessionCounter(Counter):
    async def explain(self, source: Plain) -> Plain:
        """Where a message from there would go, and why, and whether its sender is let in; changes nothing."""
        place = SessionSource.from_dict(source)
        found = await self._conversations.explain(place)
        plain: Plain = msgspec.to_builtins(found, enc_hook=str)
        return plain | {"access": await self._access(place)}

    async def _access(self, source: SessionSource) -> Plain:
        channels = self._gateway.parts.channels.values() if self._gateway else await self._channels()
        named = (str(source.platform), source.account)
        channel = next((each for each in channels if (each.name, each.account) == named), None)
        known = capabilities_in(channel, source) if channel else Capabilities()
        verdict = await self._people.look(source, known.authenticates, reliable_ids=known.reliable_sender_ids)
        return {"channel": channel is not None} | picked(verdict, "allowed", "rule", "role", "who")

    async def list_sessions(
        self,
        limit: int = LIST_LIMIT,
        active_minutes: float | None = None,
        all: bool = False,
    ) -> list[Plain]:
        """Sessions, newest activity first: the current one of each conversation, or ended ones too."""
        since = None
        if active_minutes is not None:
            since = inputs.ago(self._clock.now(), "active_minutes", active_minutes, MINUTE)
        found = await self._sessions(inputs.check_limit(limit), since, all)
        return [await self._facts(session) for session in found]

    async def _sessions(self, limit: int, since: datetime | None, ended: bool) -> list[Session]:
        if not ended:
            return await self._store.sessions.list_current(since=since, limit=limit)
        found = await self._conversations.list_own_sessions(self._viewer, limit=limit)
        return [each for each in found if since is None or each.entry.updated_at >= since]

    async def show_session(self, session_id: str) -> StoredSession:
        """A session's facts and its messages, as they are stored: over HTTP the newest 8 MiB of them, with
        `is_whole` false where there are more."""
        session = await self._find(session_id)
        if self._visitor is None:
            transcript, is_whole = await self._conversations.load_records(session.id), True
        else:
            newest = await self._conversations.load_newest_records(session.id)
            transcript, is_whole = newest.messages, newest.is_whole
        facts = await self._facts(session)
        return cast(StoredSession, facts | {"transcript": transcript, "is_whole": is_whole})

    async def search(self, query: str, limit: int = SEARCH_LIMIT) -> list[FoundMessage]:
        """Messages of all sessions with these words, the best first.

        Over HTTP of one that is longer than 4 KiB there are only the role and the first 1,200 characters of
        its text, with `is_whole` false: all of it is among the messages of its session, where it has the
        number after its position.
        """
        search = self._conversations.search if self._visitor is None else self._conversations.find_messages
        hits = await search(query, self._viewer, limit=limit)
        return [cast(FoundMessage, plain(hit)) for hit in hits]

    async def export_session(
        self,
        session_id: str,
        format: Annotated[str, among(exports.Format)] = exports.Format.JSONL,
        ancestors: bool = False,
    ) -> AsyncGenerator[str, None]:
        """A session as text, piece by piece; with its ancestors what was said before compressions, too."""
        form = chosen("format", exports.Format, format)
        session = await self._find(session_id)
        for piece in exports.begin(form, await self._facts(session)):
            yield piece
        async with aclosing(self._conversations.read_records(session.id, ancestors)) as records:
            async for record in records:
                if piece := exports.written(form, record):
                    yield piece

    async def begin_background(
        self,
        conversation: str,
        name: str = background.DEFAULT_NAME,
        seconds: float = background.DEFAULT_SECONDS,
    ) -> Plain:
        """Work runs for a conversation, given by a session's id or its key; at most so long."""
        key = await self._key_of(conversation)
        return plain(await self._conversations.begin_background(key, name, seconds))

    async def end_background(self, conversation: str, name: str = background.DEFAULT_NAME) -> bool:
        """It has ended; False when none of that name ran."""
        return await self._conversations.end_background(await self._key_of(conversation), name)

    async def list_background(self, limit: int = LIST_LIMIT) -> list[Plain]:
        """The work that runs, the latest first."""
        found = await self._store.background.list(self._clock.now(), inputs.check_limit(limit))
        return [plain(work) for work in found]

    async def _key_of(self, conversation: str) -> str:
        """The key of a conversation that is given by it or by the id of one of its sessions."""
        if await self._store.sessions.current(conversation):
            return conversation
        return (await self._find(conversation)).entry.session_key
