"""What pages ask of the store: lists, a page at a time, each with as little work as the page is long."""

from frontdesk.stores.lists.naming import NameLists
from frontdesk.stores.lists.overview import SessionLists
from frontdesk.stores.lists.reading import TranscriptLists
from frontdesk.stores.lists.working import WorkLists


class Lists(SessionLists, NameLists, TranscriptLists, WorkLists):
    """Lists of sessions, of what was said in them, and of the work for them."""
