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
