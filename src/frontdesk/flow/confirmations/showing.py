"""What people see of a request before they decide, with what the store knows of it."""

import asyncio
from functools import partial

from msgspec.structs import replace

from frontdesk.flow.confirmations.precautions import Precautions
from frontdesk.formats import precedents
from frontdesk.formats.cards import Card, Known
from frontdesk.model import pages
from frontdesk.model.confirmations import Confirmation, Status
from frontdesk.model.pages import ListPage


class Showing(Precautions):
    async def with_precedent(self, asked: Confirmation) -> Confirmation:
        """The same with what was approved before of its kind."""
        return replace(asked, precedent=await self._kept.precedent(asked))

    async def page(self, status: Status, limit: int, after: str | None = None) -> ListPage[Confirmation]:
        """Newest first, each with its precedent; ``after`` the end of an earlier page."""
        page = await self._kept.page(status, pages.check_items(limit), after)
        return replace(page, items=[await self.with_precedent(each) for each in page.items])

    async def known(self, asked: Confirmation) -> Known:
        """What is known of a request besides its bytes."""
        return await asyncio.to_thread(precedents.known_of, await self.with_precedent(asked))

    async def card(
        self, asked: Confirmation, *, reveal: bool = False, wide: bool = False, all_words: bool = False
    ) -> Card | None:
        """What people see of a request before they decide; None when what it was about was erased, or never
        kept."""
        known = await self.with_precedent(asked)
        show = partial(precedents.card_of, known, reveal=reveal, wide=wide, all_words=all_words)
        return await asyncio.to_thread(show)
