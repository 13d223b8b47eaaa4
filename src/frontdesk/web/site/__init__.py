"""The site: the pages on which people see and run the gateway. A module for each page, with its row and what
it shows; its template beside the others."""

from frontdesk.web import acting_api, files_api, office_api
from frontdesk.web.endpoints import Served
from frontdesk.web.site import (
    audit,
    chat,
    checkpoints,
    deliveries,
    events,
    growing,
    overview,
    people,
    pictures,
    reference_page,
    session_pages,
    settings,
    turns,
    usage,
)
from frontdesk.web.site.base import PAGES, Site

__all__ = [
    "acting_api",
    "audit",
    "chat",
    "checkpoints",
    "deliveries",
    "files_api",
    "overview",
    "people",
    "reference_page",
    "serve",
    "session_pages",
    "settings",
    "turns",
    "usage",
]


def serve(site: Site) -> list[Served]:
    """The rows of the pages, and of the API that they use."""
    return [
        Served([*PAGES, *events.EVENTS, *growing.GROWING, *pictures.PICTURES], site, visit=site.visit),
        Served(office_api.OPERATIONS, site.office, visit=site.visit, repeats=site.repeats),
    ]
