"""E-mail, as the gateway has to know it."""

from frontdesk.model.platforms import PlatformFacts

FACTS = PlatformFacts(distinct_ids=True)
