"""E-mail, as the gateway has to know it."""

from frontdesk.model.platforms import PlatformFacts

NOTE = (
    "Your answer is sent as an e-mail, once it is complete: write it so that it can be read alone. A thread of"
    " mails is one conversation; what people quote and sign with is left out."
)
FACTS = PlatformFacts(distinct_ids=True, notes=lambda _: NOTE)
