"""Discord, as the gateway has to know it."""

from frontdesk.formats.notes import known, no_apis
from frontdesk.model.contexts import SessionContext
from frontdesk.model.platforms import PlatformFacts


def _notes(context: SessionContext) -> str:
    if not context.platform_tools:
        return no_apis("Discord")
    source = context.source
    here = {"channel id": source.chat_id}
    if source.parent_chat_id and source.thread_id:
        here = {"parent channel id": source.parent_chat_id, "thread id": source.thread_id}
    return f"You have Discord tools. This chat is {known({'guild id': source.guild_id} | here)}."


FACTS = PlatformFacts(distinct_ids=True, mentions_by_id=True, telling_rank=2, notes=_notes)
