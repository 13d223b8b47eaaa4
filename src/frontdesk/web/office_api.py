"""The HTTP API: what the pages show and do, as JSON. Each row is a question of the office."""

from collections.abc import Callable
from typing import Any

from frontdesk import errors
from frontdesk.app.office import Office
from frontdesk.app.reception import Reception
from frontdesk.model.visitors import Need
from frontdesk.web.operations import Table, Who
from frontdesk.web.questions import add_question

PREFIX = "/api/v1"
ABOUT = ("frontdesk", "What the pages show and do, for programs.")

CHECKPOINTS = (
    errors.UnknownProfile,
    errors.CheckpointError,
    errors.CheckpointsOff,
    errors.RestoreBlocked,
    errors.RestoreStopped,
)
ASIDE = (errors.NotTriedAgain, errors.NeedsGateway)

OPERATIONS = Table(who=Who.VISITOR, keyed=True)


def _add(verb: str, path: str, method: Callable[..., Any], need: Need, **columns: Any) -> None:
    add_question(OPERATIONS, verb, PREFIX + path, method, need=need, **columns)


_add("GET", "/status", Office.status, Need.LOOK_AT_ALL)
_add("GET", "/health", Office.health, Need.LOOK_AT_ALL)
_add("GET", "/usage", Office.usage, Need.LOOK)
_add("GET", "/usage/marathon", Office.marathon, Need.LOOK_AT_ALL)
_add("GET", "/turns", Office.page_turns, Need.LOOK)
_add("GET", "/turns/counts", Office.count_turns, Need.LOOK)
_add("POST", "/turns/{turn_id}/retry", Office.retry_turn, Need.ADMINISTER, problems=ASIDE)
_add("POST", "/turns/{turn_id}/give-up", Office.give_up_turn, Need.ADMINISTER, problems=ASIDE)
_add("GET", "/deliveries", Office.page_deliveries, Need.LOOK)
_add("GET", "/deliveries/counts", Office.count_deliveries, Need.LOOK)
_add("POST", "/deliveries/{delivery_id}/resend", Office.resend_delivery, Need.ACT)
_add("POST", "/deliveries/{delivery_id}/discard", Office.discard_delivery, Need.ADMINISTER)
_add("GET", "/sessions", Office.browse_sessions, Need.LOOK, problems=(errors.InvalidQuery,))
_add("GET", "/sessions/counts", Office.count_states, Need.LOOK)
_add("GET", "/sessions/{session_id}", Office.show_session, Need.LOOK)
_add("GET", "/sessions/{session_id}/facts", Office.describe_session, Need.LOOK)
_add("GET", "/sessions/{session_id}/messages", Office.transcript, Need.LOOK)
_add("GET", "/sessions/{session_id}/turns", Office.open_turns, Need.LOOK)
_add("GET", "/sessions/{session_id}/export", Office.export_session, Need.LOOK)
_add("GET", "/search", Office.search, Need.LOOK, problems=(errors.InvalidQuery,))
_add("GET", "/people", Office.list_people, Need.LOOK_AT_ALL)
_add("GET", "/people/pending", Office.pending_people, Need.LOOK_AT_ALL)
_add("GET", "/people/links", Office.list_links, Need.LOOK_AT_ALL)
_add("GET", "/people/access", Office.show_access, Need.LOOK_AT_ALL)
_add(
    "POST",
    "/people/approve",
    Office.approve_person,
    Need.ADMINISTER,
    problems=(errors.WrongCode, errors.LockedOut),
)
_add("POST", "/people/refuse", Office.refuse_person, Need.ADMINISTER)
_add("POST", "/people/allow", Office.allow_person, Need.ADMINISTER)
_add("POST", "/people/revoke", Office.revoke_person, Need.ADMINISTER)
_add("POST", "/people/unlink", Office.unlink_person, Need.ADMINISTER)
_add("GET", "/workplaces", Office.list_workplaces, Need.LOOK_AT_ALL)
_add("GET", "/checkpoints", Office.list_checkpoints, Need.LOOK_AT_ALL, problems=CHECKPOINTS)
_add("POST", "/checkpoints/prune", Office.prune_checkpoints, Need.ADMINISTER, problems=CHECKPOINTS)
_add("GET", "/checkpoints/{checkpoint}", Office.show_checkpoint, Need.LOOK_AT_ALL, problems=CHECKPOINTS)
_add("GET", "/checkpoints/{checkpoint}/diff", Office.diff_checkpoint, Need.LOOK_AT_ALL, problems=CHECKPOINTS)
_add(
    "POST",
    "/checkpoints/{checkpoint}/restore",
    Office.restore_checkpoint,
    Need.ADMINISTER,
    problems=CHECKPOINTS,
)
_add("GET", "/audit", Office.list_audit, Need.LOOK_AT_ALL)
_add("GET", "/audit/export", Office.export_audit, Need.LOOK_AT_ALL)
_add("POST", "/audit/verify", Office.verify_audit, Need.LOOK_AT_ALL)
_add("GET", "/settings", Office.show_settings, Need.LOOK_AT_ALL)


RECEPTION = Table(who=Who.VISITOR, keyed=True)
SECRET = {"keeps_answer": False, "problems": (errors.PassTaken, errors.NoPages)}
"""What is in the answer is told once."""


def _admit(verb: str, path: str, method: Callable[..., Any], need: Need, **columns: Any) -> None:
    add_question(RECEPTION, verb, PREFIX + path, method, need=need, **columns)


_admit("GET", "/passes", Reception.list_passes, Need.LOOK_AT_ALL)
_admit("POST", "/passes/tokens", Reception.make_token, Need.ADMINISTER, **SECRET)
_admit("POST", "/passes/links", Reception.make_link, Need.ADMINISTER, **SECRET)
_admit("POST", "/passes/revoke", Reception.revoke_pass, Need.ADMINISTER)
