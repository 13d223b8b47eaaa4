"""Questions to people that are shown later than they were asked."""

from msgspec.structs import replace

from frontdesk import errors
from frontdesk.flow.confirmations.telling import DIGEST
from frontdesk.flow.parts import Parts
from frontdesk.model.confirmations import Status
from frontdesk.model.deliveries import Delivery

FORGOTTEN = "{id} waits for nobody any more."


async def as_it_stands(parts: Parts, delivery: Delivery) -> Delivery:
    """The delivery; a question that was decided meanwhile says so, and has no digest that buttons
    could decide about."""
    if delivery.confirmation_id is None:
        return delivery
    try:
        asked = await parts.confirmations.find(delivery.confirmation_id)
    except errors.UnknownConfirmation:
        text = FORGOTTEN.format(id=delivery.confirmation_id)
    else:
        if asked.status is Status.PENDING:
            return delivery
        text = parts.telling.text(asked, parts.capabilities_of(delivery.to).text_limit)
    extra = {name: value for name, value in delivery.extra.items() if name != DIGEST}
    return replace(delivery, text=text, extra=extra)
