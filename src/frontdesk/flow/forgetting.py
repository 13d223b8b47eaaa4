"""Ending a session so that nobody can go on with it."""

from frontdesk.flow import hook_calls
from frontdesk.flow.parts import Parts
from frontdesk.model.people import Viewer
from frontdesk.model.policies import EndReason
from frontdesk.model.sessions import Session


async def forget(parts: Parts, session: Session, viewer: Viewer) -> None:
    """End it for good, whether or not it had ended: its title can be given again, its files are gone."""
    await parts.conversations.set_title(session.id, None, viewer)
    await parts.conversations.end_session(session.id, EndReason.FORGOTTEN)
    await parts.filing.forget(session.id)
    await hook_calls.leave(parts, session.entry, EndReason.FORGOTTEN)
