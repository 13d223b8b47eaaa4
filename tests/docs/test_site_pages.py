"""The tour of the pages and the reference of the API say what there is."""

import re

import pytest

from frontdesk.web import office_api
from frontdesk.web.confirmations import inbox
from frontdesk.web.pages.frame import PLACES, SitePlace
from frontdesk.web.site import events, reference_page
from frontdesk.web.site.base import PAGES
from tests import api_reference
from tests.architecture.test_words import SITE
from tests.docs import pages

DOCS = pages.ROOT / "docs"
QUESTION = re.compile(r"{# (.+\?) #}")


def test_reference_is_what_the_document_of_the_api_says() -> None:
    page = pages.read(DOCS / "http.md")
    assert page == api_reference.render(), "make it anew: python -m tests.api_reference > docs/http.md"


def test_reference_tells_what_is_in_an_address_from_what_is_in_the_header() -> None:
    (told,) = [
        each for group in reference_page.groups() for each in group.entries if each.id == "follow_events"
    ]
    assert [each.name for each in told.parameters] == ["after", "about"]
    assert [each.name for each in told.headers] == ["last-event-id"]
    assert "with commas between them" in told.parameters[1].about


def test_summary_of_an_address_is_the_first_sentence_of_what_is_said_of_it() -> None:
    rows = [*PAGES, *office_api.OPERATIONS, *office_api.RECEPTION, *inbox.OPERATIONS, *events.EVENTS]
    assert rows
    for row in rows:
        whole = f"{row.summary}. {row.description}".split()
        assert whole == (row.handle.__doc__ or "").split(), row.path
        assert ". " not in row.summary


def test_tour_has_the_question_that_each_page_answers() -> None:
    tour = " ".join(pages.read(DOCS / "site.md").split())
    first = [path.read_text(encoding="utf-8").splitlines()[0] for path in SITE]
    asked = [found[1] for found in map(QUESTION.fullmatch, first) if found]
    assert asked
    assert [question for question in asked if f"*{question}*" not in tour] == []


@pytest.mark.parametrize("place", PLACES, ids=lambda place: place.name)
def test_tour_has_pictures_of_every_place_in_light_dark_and_on_a_phone(place: SitePlace) -> None:
    tour = pages.read(DOCS / "site.md")
    shown = [f"pictures/site-{place.name}-{look}.webp" for look in ("light", "dark", "phone")]
    assert [each for each in shown if each not in tour or not (DOCS / each).exists()] == []
