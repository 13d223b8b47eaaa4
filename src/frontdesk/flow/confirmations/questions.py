"""Questions to people that are shown later than they were asked."""

from msgspec.structs import replace

from frontdesk import errors
from frontdesk.flow.confirmations.service import Confirmations
from frontdesk.flow.confirmations.telling import DIGEST, Telling
from frontdesk.model.confirmations import Status
from frontdesk.model.deliveries import Delivery

FORGOTTEN = "{id} waits for nobody any more."


async def as_it_stands(service: Confirmations, telling: Telling, delivery: Delivery) -> Delivery:
    """The delivery; a question that was decided meanwhile says so, and has no digest that buttons
    could decide about."""
    if delivery.confirmation_id is None:
        return delivery
    try:
        asked = await service.find(delivery.confirmation_id)
    except errors.UnknownConfirmation:
        text = FORGOTTEN.format(id=delivery.confirmation_id)
    else:
        if asked.status is Status.PENDING:
            return delivery
        text = telling.text(asked, telling.text_limit(delivery.to))
    extra = {name: value for name, value in delivery.extra.items() if name != DIGEST}
    return replace(delivery, text=text, extra=extra)
