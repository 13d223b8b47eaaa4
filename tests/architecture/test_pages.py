"""Templates in which every text is a text, and nothing that a policy would have to allow."""

import re
from pathlib import Path

import pytest

from tests.architecture import source

TEMPLATES = sorted(source.SOURCE.rglob("templates/*.html"))
SCRIPTS = sorted(source.SOURCE.rglob("static/*.js"))
AS_IT_IS = re.compile(r"\|\s*safe\b|autoescape|Markup\(|tojson|xmlattr")
"""What would let a text through as markup."""
UNQUOTED = re.compile(r"=\s*{{")
INLINE = re.compile(r"<style|\sstyle=|\son\w+=|<script(?![^>]*\ssrc=)|javascript:")
MAKES_MARKUP = re.compile(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function")


LISTENS = re.compile(r"[\"']key(?:down|up|press)[\"']|onkey|accessKey")
LISTENERS = {"keys.js": "shows all of them", "arming.js": "counts one press", "write.js": "a field's own"}
"""Scripts that may listen to keys: what keys.js presses has data-key, and so is in the list of keys."""
ACT = re.compile(r"<(?:button|form)[^>]*?\sdata-act=\"((?:{{.*?}}|[^\"])*)\"((?:{{.*?}}|[^>])*)>")
ASK_FIRST = {"discard", "prune", "restore", "refuse", "revoke", "unlink", "forget", "give-up"}
"""What takes something away, for good or from somebody."""
ASK_NOT = {"resend", "retry", "stop", "approve", "allow", "rename", "undo", "redo", "reset", "branch"}
ASK_NOT |= {"compress", "resume", "checkpoint"}
"""What takes nothing away, or can be taken back where it was done."""


def test_there_are_templates_and_scripts() -> None:
    assert TEMPLATES
    assert SCRIPTS


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.name)
def test_template_escapes_every_text_and_has_nothing_inline(path: Path) -> None:
    text = path.read_text()
    for forbidden in (AS_IT_IS, UNQUOTED, INLINE):
        assert forbidden.findall(text) == []


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.name)
def test_script_makes_no_markup_of_texts(path: Path) -> None:
    assert MAKES_MARKUP.findall(path.read_text()) == []


def test_no_module_marks_a_text_as_safe() -> None:
    assert [path for path in source.SOURCE.rglob("*.py") if "Markup(" in path.read_text()] == []


def test_only_the_script_that_shows_keys_presses_by_them() -> None:
    listening = {path.name for path in SCRIPTS if LISTENS.search(path.read_text())}
    assert listening == set(LISTENERS)


def test_whatever_takes_something_away_asks_first() -> None:
    acts = [
        (act.rsplit("/", 1)[-1], "data-sure=" in rest)
        for path in TEMPLATES
        for act, rest in ACT.findall(path.read_text())
    ]
    assert {verb for verb, _ in acts} <= ASK_FIRST | ASK_NOT
    assert [verb for verb, asks in acts if verb in ASK_FIRST and not asks] == []
    assert len(acts) == sum(path.read_text().count("data-act=") for path in TEMPLATES)
