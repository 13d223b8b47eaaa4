"""The office: everything that can be asked about the gateway, as plain data. Each public method of a counter
is a question: commands ask it, here or through the owner's socket, pages and programs over HTTP."""

from frontdesk.app.office.acting import ActingCounter
from frontdesk.app.office.audit import AuditCounter
from frontdesk.app.office.checkpoints import CheckpointCounter
from frontdesk.app.office.condition import ConditionCounter
from frontdesk.app.office.conversations import SessionCounter
from frontdesk.app.office.listing import ListCounter
from frontdesk.app.office.people import PeopleCounter
from frontdesk.app.office.plain import Plain as Plain
from frontdesk.app.office.plain import picked as picked
from frontdesk.app.office.settings import SettingsCounter
from frontdesk.app.office.transcripts import TranscriptCounter
from frontdesk.app.office.usage import UsageCounter
from frontdesk.app.office.work import WorkCounter


class Office(
    SessionCounter,
    ListCounter,
    TranscriptCounter,
    WorkCounter,
    UsageCounter,
    ConditionCounter,
    PeopleCounter,
    CheckpointCounter,
    AuditCounter,
    SettingsCounter,
    ActingCounter,
):
    """All of its counters."""
