"""BlueBubbles, as the gateway has to know it."""

from frontdesk.model.platforms import PlatformFacts

NOTES = (
    "Each block of text between blank lines is delivered as a message bubble of its own. Keep blocks short,"
    " and put a blank line only where a new bubble shall begin."
)

FACTS = PlatformFacts(distinct_ids=True, pii_safe=True, notes=lambda _: NOTES)
