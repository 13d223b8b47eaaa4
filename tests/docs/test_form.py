"""The form of the pages and of the changelog."""

from pathlib import Path

import pytest

from tests.docs import pages

CHANGELOG = pages.ROOT / "CHANGELOG.md"
MADE = {pages.ROOT / "docs" / "settings.md", pages.ROOT / "docs" / "http.md"}
MAX_CHARACTERS = 120


def sections() -> list[str]:
    """What stands under each heading of the changelog below its first two."""
    _, _, rest = pages.read(CHANGELOG).partition("\n### ")
    return [part.partition("\n")[2].strip("\n") for part in f"### {rest}".split("\n#")]


@pytest.mark.parametrize("page", [CHANGELOG, *pages.all_pages()], ids=pages.name_of)
def test_prose_is_wrapped_where_it_is_written_by_hand(page: Path) -> None:
    lines = [line for line in pages.prose(page).splitlines() if not line.startswith(("|", "#"))]
    assert page in MADE or not [line for line in lines if len(line) > MAX_CHARACTERS]


def test_each_heading_of_the_changelog_has_one_list() -> None:
    lines = [line for section in sections() for line in section.splitlines()]
    assert lines
    assert [line for line in lines if not line.startswith(("- ", "  "))] == []


def test_changelog_says_nothing_twice() -> None:
    items = [item for section in sections() for item in f"\n{section}".split("\n- ")[1:]]
    assert len(items) == len(set(items))
