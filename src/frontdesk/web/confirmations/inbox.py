"""Approvals for programs: the same requests as on the pages, decided with the same care."""

from datetime import datetime
from typing import Annotated

import msgspec

from frontdesk.formats.cards import Card, HiddenPlace, Oddity
from frontdesk.formats.comparisons import ComparedLine
from frontdesk.formats.folding import CardLine
from frontdesk.model.confirmations import Confirmation, Status
from frontdesk.model.pages import PAGE_ITEMS
from frontdesk.model.visitors import Need
from frontdesk.web import problems
from frontdesk.web.confirmations import views
from frontdesk.web.confirmations.pages import (
    MAX_BODY_BYTES,
    PageOutcome,
    Pages,
    PageVote,
    Uncovered,
)
from frontdesk.web.confirmations.records import Digest, Text
from frontdesk.web.endpoints import HttpCall
from frontdesk.web.operations import Nothing, Table, Who

PREFIX = "/api/v1/approvals"

OPERATIONS = Table(who=Who.VISITOR, need=Need.LOOK_AT_REQUESTS, keyed=True, max_body_bytes=MAX_BODY_BYTES)

Seen = Annotated[str, msgspec.Meta(description="What looking at hidden values gave.")]


class InboxPlace(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    limit: int = PAGE_ITEMS
    after: str | None = None
    """The ``next`` of the page before."""


class WaitingRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A request in the list of what waits."""

    id: str
    headline: str
    """What is done, made from the bytes."""
    requester: str
    """As the agent calls itself."""
    on_behalf_of: str
    digest: Digest
    votes: str
    created_at: datetime
    expires_at: datetime
    is_high_risk: bool
    flags: tuple[Oddity, ...]


class WaitingRequests(msgspec.Struct, frozen=True, kw_only=True):
    items: tuple[WaitingRequest, ...]
    next: str | None
    """Where the list goes on."""
    waiting: int
    """How many there are."""


class ShownCard(msgspec.Struct, frozen=True, kw_only=True):
    """What people see of an action before they decide."""

    headline: str
    is_high_risk: bool
    words: tuple[str, ...]
    """The agent's own words: nobody checked them."""
    unusual: tuple[Oddity, ...]
    comparison: tuple[ComparedLine, ...]
    hidden: tuple[HiddenPlace, ...]
    """What nobody approves before they have looked at it."""
    to_type: str | None
    """What whoever approves has to type, by what it is."""
    lines: tuple[CardLine, ...]
    """All arguments."""


class ShownRequest(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    status: Status
    digest: Digest
    requester: str
    session_key: str | None
    created_at: datetime
    expires_at: datetime
    votes: str
    obstacle: str | None
    """Why the one who looks may not decide."""
    resolved_at: datetime | None
    resolved_by: str | None
    reason: str | None
    use: views.GrantUse
    """What becomes of the yes."""
    redeemed_at: datetime | None
    redeemed_by: str | None
    card: ShownCard | None
    """None when what it was about was erased."""


class InboxVote(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A decision about the action that was shown."""

    approves: bool
    digest: Digest
    reason: Text | None = None
    target: Text | None = None
    """What was typed, for one of the ten."""
    seen: Seen | None = None


@OPERATIONS.add("GET", PREFIX, WaitingRequests, query=InboxPlace)
async def list_approvals(pages: Pages, call: HttpCall) -> WaitingRequests:
    """What waits for a decision, the newest first; on each page the worst."""
    page = await pages.service.page(Status.PENDING, call.query.limit, call.query.after)
    rows = [_waiting(row) for row in views.rows(page.items, pages.clock.now(), {})]
    return WaitingRequests(items=tuple(rows), next=page.next, waiting=await pages.service.pending_count())


@OPERATIONS.add("GET", f"{PREFIX}/{{id}}", ShownRequest)
async def show_approval(pages: Pages, call: HttpCall) -> ShownRequest:
    """A request, all of it but what is hidden."""
    asked = await pages.service.find(call.id)
    use, obstacle = views.use_of(asked, pages.clock.now()), await pages.obstacle(call.caller, asked)
    return _shown(asked, await pages.service.card(asked), obstacle, use)


@OPERATIONS.add(
    "POST",
    f"{PREFIX}/{{id}}/reveal",
    Uncovered,
    keeps_answer=False,
    need=Need.DECIDE,
    body=Nothing,
    problems=(410,),
)
async def reveal_approval(pages: Pages, call: HttpCall) -> Uncovered:
    """What is hidden, for whoever may decide; the log says who looked."""
    return await pages.uncover(call.caller, await pages.service.find(call.id))


@OPERATIONS.add(
    "POST",
    f"{PREFIX}/{{id}}/decision",
    PageOutcome,
    need=Need.DECIDE,
    body=InboxVote,
    needs_body=True,
    problems=problems.OF_A_VOTE,
)
async def decide_approval(pages: Pages, call: HttpCall) -> PageOutcome:
    """Allow or refuse the action that was shown."""
    said = call.read(InboxVote)
    verdict = PageVote(**msgspec.structs.asdict(said))
    return await pages.vote(verdict, call.caller, await pages.service.find(call.id))


def _waiting(row: views.WaitingRow) -> WaitingRequest:
    return WaitingRequest(
        id=row.id,
        headline="".join(map(str, row.gist.headline)),
        requester=row.requester,
        on_behalf_of=row.on_behalf_of,
        digest=row.digest,
        votes=row.votes,
        created_at=row.created_at,
        expires_at=row.expires_at,
        is_high_risk=row.gist.is_high_risk,
        flags=row.gist.flags,
    )


def _shown(asked: Confirmation, card: Card | None, obstacle: str | None, use: views.GrantUse) -> ShownRequest:
    return ShownRequest(
        id=asked.id,
        status=asked.status,
        digest=asked.digest,
        requester=asked.requester,
        session_key=asked.session_key,
        created_at=asked.created_at,
        expires_at=asked.expires_at,
        votes=views.votes(asked),
        obstacle=obstacle,
        resolved_at=asked.resolved_at,
        resolved_by=asked.resolved_by,
        reason=asked.reason,
        use=use,
        redeemed_at=asked.redeemed_at,
        redeemed_by=asked.redeemed_by,
        card=_card(card) if card else None,
    )


def _card(card: Card) -> ShownCard:
    return ShownCard(
        headline="".join(map(str, card.headline)),
        is_high_risk=card.is_high_risk,
        words=(*card.words, *card.more_words),
        unusual=card.unusual,
        comparison=card.comparison,
        hidden=card.hidden,
        to_type=card.typed.what if card.typed else None,
        lines=card.lines,
    )
