"""Pictures of a conversation, small ones of kinds that run nothing."""

from starlette.responses import Response

from frontdesk import errors
from frontdesk.flow.exhibits import SHOWN_IMAGES
from frontdesk.model.visitors import Need
from frontdesk.web.endpoints import HttpCall
from frontdesk.web.files_api import sent
from frontdesk.web.operations import Form, Table, Who
from frontdesk.web.site.base import Site

PICTURES = Table(who=Who.VISITOR, need=Need.LOOK, form=Form.RASTER)

MOST_BYTES = 8 * 1024 * 1024
"""A larger one is saved, and not shown."""


def is_shown(kind: object, size: object) -> bool:
    """Whether a file is a picture that the page shows."""
    return kind in SHOWN_IMAGES and isinstance(size, int) and 0 < size <= MOST_BYTES


@PICTURES.add("GET", "/sessions/{session_id}/pictures/{digest}")
async def show_attached(site: Site, call: HttpCall) -> Response:
    """A picture of a session, to be shown beside its message."""
    found = await site.office_for(call).open_file(call.params["session_id"], call.params["digest"])
    if not is_shown(found.kept.kind, found.kept.size):
        raise errors.UnknownFile()
    return sent(found, found.kept.kind)
