"""The HTTP API: what the pages show and do, as JSON. Each row is a question of the office."""

from collections.abc import Callable
from typing import Any

from frontdesk.app.office import Office
from frontdesk.model.visitors import Need
from frontdesk.web.operations import Table, Who
from frontdesk.web.questions import add_question

PREFIX = "/api/v1"
ABOUT = ("frontdesk", "What the pages show and do, for programs.")

OPERATIONS = Table(who=Who.VISITOR)


def _add(verb: str, path: str, method: Callable[..., Any], need: Need, **columns: Any) -> None:
    add_question(OPERATIONS, verb, PREFIX + path, method, need=need, **columns)


_add("GET", "/status", Office.status, Need.LOOK_AT_ALL)
_add("GET", "/sessions/{session_id}", Office.show_session, Need.LOOK)
_add("GET", "/sessions/{session_id}/export", Office.export_session, Need.LOOK)
_add("GET", "/search", Office.search, Need.LOOK)
_add("GET", "/people", Office.list_people, Need.LOOK_AT_ALL)
_add("GET", "/people/pending", Office.pending_people, Need.LOOK_AT_ALL)
_add("POST", "/people/approve", Office.approve_person, Need.ADMINISTER)
_add("POST", "/people/revoke", Office.revoke_person, Need.ADMINISTER)
