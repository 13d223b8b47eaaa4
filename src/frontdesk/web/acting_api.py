"""The HTTP API: writing into conversations, and having something done to them."""

from collections.abc import Callable
from typing import Any

from frontdesk import errors
from frontdesk.app.office import Office
from frontdesk.app.office.acting import Acted
from frontdesk.app.office.writing import TakenMessage
from frontdesk.model.visitors import Need
from frontdesk.web.office_api import OPERATIONS, PREFIX
from frontdesk.web.questions import add_question

PROBLEMS = (
    errors.FileUnavailable,
    errors.InvalidMessage,
    errors.InvalidTitle,
    errors.NeedsGateway,
    errors.NotCurrent,
    errors.NotWritable,
    errors.SessionForgotten,
    errors.TitleTaken,
    errors.TooManyWaiting,
)
COLUMNS: dict[str, Any] = {"need": Need.ACT, "once_by_key": True, "problems": PROBLEMS}


def _add_message(path: str, method: Callable[..., Any], *more: type[errors.FrontdeskError]) -> None:
    columns = COLUMNS | {"problems": (*PROBLEMS, *more)}
    add_question(OPERATIONS, "POST", PREFIX + path, method, {202: TakenMessage}, **columns)


def _add_order(what: str, method: Callable[..., Any], need: Need = Need.ACT) -> None:
    """Something to be done to a session; what takes longer than somebody waits is told of by its turn."""
    path, answers = f"{PREFIX}/sessions/{{session_id}}/{what}", {200: Acted, 202: Acted}
    columns = COLUMNS | {"need": need}
    add_question(OPERATIONS, "POST", path, method, answers, goes_on=_goes_on, **columns)


def _goes_on(acted: Acted) -> bool:
    return not acted["is_over"]


_add_message("/chats", Office.start_chat, errors.TooManyChats)
_add_message("/sessions/{session_id}/messages", Office.write_message)
_add_order("stop", Office.stop_session)
_add_order("reset", Office.reset_session)
_add_order("resume", Office.resume_session)
_add_order("rename", Office.rename_session)
_add_order("branch", Office.branch_session)
_add_order("compress", Office.compress_session)
_add_order("undo", Office.undo_session)
_add_order("redo", Office.redo_session)
_add_order("forget", Office.forget_session)
_add_order("checkpoint", Office.keep_checkpoint, Need.ADMINISTER)
add_question(OPERATIONS, "GET", PREFIX + "/turns/{turn_id}", Office.show_turn, need=Need.LOOK)
