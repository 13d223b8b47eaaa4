"""Every operation on conversations in one service."""

from frontdesk.flow.finding import Finder
from frontdesk.flow.sessions import Sessions
from frontdesk.flow.transcripts import Transcripts


class Conversations(Sessions, Transcripts, Finder):
    """Finds, keeps and changes conversations, for any number of callers."""
