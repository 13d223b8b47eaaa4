"""What happens, for pages and programs: they are told that something changed, and ask for it."""

from collections.abc import AsyncGenerator
from functools import partial
from typing import Annotated

import msgspec
from msgspec import Meta

from frontdesk import errors
from frontdesk.model.visitors import Need
from frontdesk.web import pushing
from frontdesk.web.endpoints import HttpCall
from frontdesk.web.office_api import PREFIX
from frontdesk.web.operations import Form, Table, Who
from frontdesk.web.site.base import Site
from frontdesk.web.streams import EventStream
from frontdesk.web.turn_events import turn_events

MOST_SUBJECTS = 20
ABOUT = (
    "Only what concerns one of these: ids of sessions, turns and requests, session keys, owners, kinds of "
    f"events; with commas between them, at most {MOST_SUBJECTS}. A message that waits to be answered is in "
    "no session yet: the key of its conversation tells of it."
)

EVENTS = Table(who=Who.VISITOR, need=Need.LOOK, form=Form.EVENTS)


class Since(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """From where on, and of what."""

    after: Annotated[str | None, Meta(description="The id of the last event that was read.")] = None
    about: Annotated[str | None, Meta(description=ABOUT)] = None


class LastEvent(msgspec.Struct, frozen=True, kw_only=True, rename={"last_event_id": "last-event-id"}):
    """What a browser sends that was cut off."""

    last_event_id: str | None = None


@EVENTS.add("GET", f"{PREFIX}/events", query=Since, headers=LastEvent)
async def follow_events(site: Site, call: HttpCall) -> EventStream:
    """What changes of all that one sees, as server-sent events; Last-Event-ID goes on where it was cut."""
    about = [each for each in (call.query.about or "").split(",") if each]
    if len(about) > MOST_SUBJECTS:
        raise errors.InvalidInput(what="The address", why=f"about names more than {MOST_SUBJECTS} things")
    after = call.headers.last_event_id or call.query.after
    may_look = partial(site.may_look, msgspec.structs.replace(call, request=pushing.kept(call.request)))
    return site.streams.events(call.known, after, may_look=may_look, about=about)


@EVENTS.add("GET", f"{PREFIX}/turns/{{turn_id}}/events", headers=LastEvent)
async def follow_turn(site: Site, call: HttpCall) -> AsyncGenerator[bytes, None]:
    """What happens in a turn from its beginning on, as server-sent events: `text`, `call`, `result`,
    `approval`, `asked`, `failed`, `restarted`, `missed`, and `end`. After `restarted` what came before counts
    no more: another attempt begins. After `missed` nothing comes but the end, with all that was said. Who
    comes back is told so by `reset`, and hears it from the beginning."""
    office, turn_id = site.office_for(call), call.params["turn_id"]
    again = bool(call.headers.last_event_id)
    return turn_events(office, turn_id, again=again, may_look=partial(site.may_look, call))
