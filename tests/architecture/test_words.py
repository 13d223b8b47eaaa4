"""What pages say stands in one file for each language, and what is there is said."""

import re
from pathlib import Path

import pytest

from frontdesk.web.pages import wording
from tests.architecture import source

SITE = sorted((source.SOURCE / "web" / "site" / "templates").glob("*.html"))
TEMPLATES = sorted(source.SOURCE.rglob("templates/*.html"))
MODULES = sorted((source.SOURCE / "web").rglob("*.py"))
SCRIPTS = sorted(source.SOURCE.rglob("static/*.js"))
SAID = re.compile(r"""say\(\s*["']([a-z_]+\.[a-z_]+)["']""")
SAID_BY_SCRIPTS = re.compile(r"""words\(\s*["']([a-z_]+)["']""")
MADE_UP = re.compile(r"""say\(\s*f?["']([a-z_]+)\.(?:["']\s*~|[a-z_]*{)""")
"""The table of a text whose name is put together."""
JINJA = re.compile(r"{% block (?:script|form) %}.*?{% endblock %}|{#.*?#}|{%.*?%}|{{.*?}}", re.DOTALL)
TAG = re.compile(r"<[^>]*>", re.DOTALL)
SPOKEN = re.compile(r"""<[^>]*\s(?:title|placeholder|aria-label|alt)="[^"]*[A-Za-z]""")
NAMES = {"frontdesk", "a", "g", "j", "k", "x", "d", "n", "s", "i", "r", "u", "v", "Enter", "Shift", "Esc"}
"""What is the same in every language: our name, and those of keys."""


def keys(language: str) -> set[str]:
    return {f"{table}.{name}" for table, texts in wording.words(language).items() for name in texts}


def test_there_are_pages_and_words() -> None:
    assert SITE
    assert wording.ENGLISH in wording.languages()


@pytest.mark.parametrize("path", SITE, ids=lambda path: path.name)
def test_template_has_no_words_of_its_own(path: Path) -> None:
    markup = JINJA.sub("", path.read_text())
    assert set(re.findall(r"[A-Za-z]{2,}|\b[A-Za-z]\b", TAG.sub(" ", markup))) <= NAMES
    assert not SPOKEN.search(markup)


@pytest.mark.parametrize("path", SITE, ids=lambda path: path.name)
def test_page_begins_with_the_question_that_it_answers(path: Path) -> None:
    text = path.read_text()
    if '{% extends "inside.html" %}' in text:
        first = text.splitlines()[0]
        assert re.fullmatch(r"{# .+\? #}", first), "the first line is the question of somebody woken at night"


def test_what_is_said_is_there_and_what_is_there_is_said() -> None:
    pages = "\n".join(path.read_text() for path in (*TEMPLATES, *MODULES))
    scripts = "\n".join(path.read_text() for path in SCRIPTS)
    said = set(SAID.findall(pages)) | {f"script.{name}" for name in SAID_BY_SCRIPTS.findall(scripts)}
    there, made_up = keys(wording.ENGLISH), set(MADE_UP.findall(pages))
    assert said <= there
    assert {key for key in there - said if key.partition(".")[0] not in made_up} == set()


@pytest.mark.parametrize("language", wording.languages())
def test_language_has_no_words_that_nobody_says(language: str) -> None:
    assert keys(language) <= keys(wording.ENGLISH)
