"""Matrix, as the gateway has to know it."""

from frontdesk.formats.notes import known
from frontdesk.model.contexts import SessionContext
from frontdesk.model.platforms import PlatformFacts

BOUNDARY = (
    "Boundary: only this room. Act and reply here; do not assume, reveal or touch anything that belongs"
    " to other rooms."
)


def _notes(context: SessionContext) -> str:
    source = context.source
    room = {"room": source.chat_name, "room id": source.chat_id, "thread id": source.thread_id}
    return f"This chat is {known(room)}. {BOUNDARY}"


ROOM = r"[!#][^:]*(?::[^:$]+(?::[0-9]{1,5}(?=:|$))?)?"
"""An id or an alias. Its server, which new ids lack, may have a port; threads begin with a dollar sign."""
FACTS = PlatformFacts(distinct_ids=True, chat_id_form=ROOM, notes=_notes)
