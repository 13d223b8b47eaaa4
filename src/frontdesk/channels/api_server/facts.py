"""Chat completions, as the gateway has to know it."""

from frontdesk.model.platforms import PlatformFacts

FACTS = PlatformFacts(nameless_chats=True)
