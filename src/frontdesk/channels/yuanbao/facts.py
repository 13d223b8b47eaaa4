"""Yuanbao, as the gateway has to know it."""

from frontdesk.model.platforms import PlatformFacts

NOTES = (
    "A normal reply in a group goes to the whole group. To write a direct message to a person, use the"
    " tool yb_send_dm with their name or user id."
)

FACTS = PlatformFacts(distinct_ids=True, notes=lambda _: NOTES)
