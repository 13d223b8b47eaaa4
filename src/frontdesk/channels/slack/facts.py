"""Slack, as the gateway has to know it."""

from frontdesk.formats.notes import no_apis
from frontdesk.model.platforms import PlatformFacts

NOTES = f"{no_apis('Slack')} Blocks and attachments of the current message are given to you as text."

FACTS = PlatformFacts(distinct_ids=True, notes=lambda _: NOTES)
