"""The HTTP API: files that people bring for their messages, and those of a conversation."""

from http import HTTPStatus
from urllib.parse import quote

import msgspec
from starlette.exceptions import HTTPException
from starlette.responses import Response

from frontdesk import errors
from frontdesk.app.office import Office
from frontdesk.app.office.files import BroughtFile, OpenFile
from frontdesk.model.visitors import Need
from frontdesk.web.endpoints import HttpCall
from frontdesk.web.office_api import OPERATIONS, PREFIX
from frontdesk.web.operations import Form
from frontdesk.web.pieces import Stream
from frontdesk.web.questions import add_question

PROBLEMS = (
    errors.FileTooLarge,
    errors.FileUnavailable,
    errors.NeedsGateway,
    errors.NoRoomForFile,
    errors.TooManyUploads,
)
FORM = "Send the bytes of the file as the body, and not in a form."
TOO_LARGE = "it has {size} bytes, and {most} are allowed"


class BringQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the file is called."""

    name: str = ""


@OPERATIONS.add(
    "POST",
    PREFIX + "/files",
    {HTTPStatus.CREATED: BroughtFile},
    need=Need.ACT,
    uploads=True,
    keyed=False,
    query=BringQuery,
    problems=(408, 415, *PROBLEMS),
)
async def bring_file(office: Office, call: HttpCall) -> BroughtFile:
    """Bring a file for a message; the message then names it by its id. Unsent it is kept for a day."""
    asked = office.seen_by(call.known)
    limits, size = await asked.file_limits(), call.upload.size
    if size is not None and size > limits["most_bytes"]:
        raise errors.FileTooLarge(why=TOO_LARGE.format(size=size, most=limits["most_bytes"]))
    kind = call.request.headers.get("content-type")  # what it is said to be: its bytes count where they tell
    if kind and kind.lower().startswith("multipart/"):
        raise HTTPException(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, FORM)
    return await asked.bring_file(call.upload.pieces(), call.query.name, kind)


add_question(
    OPERATIONS,
    "GET",
    PREFIX + "/files/limits",
    Office.file_limits,
    need=Need.LOOK,
    problems=(errors.NeedsGateway,),
)
add_question(
    OPERATIONS,
    "POST",
    PREFIX + "/files/{file_id}/discard",
    Office.discard_file,
    need=Need.ACT,
    problems=(errors.NeedsGateway,),
)


@OPERATIONS.add(
    "GET",
    PREFIX + "/sessions/{session_id}/files/{digest}",
    form=Form.BYTES,
    need=Need.LOOK,
    problems=(errors.NeedsGateway,),
)
async def give_file(office: Office, call: HttpCall) -> Response:
    """A file of a session, to be saved."""
    found = await office.seen_by(call.known).open_file(call.params["session_id"], call.params["digest"])
    return sent(found, Form.BYTES)


def sent(found: OpenFile, kind: str) -> Response:
    """The bytes as they are read. Whatever they are, no browser shows them as a page: that they are to be
    saved is said here, all else with every answer."""
    kept = found.kept
    headers = {
        "content-length": str(kept.size),
        "content-disposition": f"attachment; filename*=UTF-8''{quote(kept.name, safe='')}",
        "cross-origin-resource-policy": "same-origin",
    }
    return Stream(found.pieces, HTTPStatus.OK, headers, media_type=kind)
