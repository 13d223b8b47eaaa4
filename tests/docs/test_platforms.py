"""What each platform can do is on one page, and what it alone has to say in the log on its own."""

import re
from pathlib import Path

import pytest

from tests import platforms
from tests.docs import pages

DOCS = pages.ROOT / "docs"
FOLDERS = [
    each.parent for each in sorted((pages.ROOT / "src" / "frontdesk" / "channels").glob("*/channel.py"))
]
ROW = re.compile(r"^\| `(\w+)` \| (?:info|warning|error) \|", re.MULTILINE)
LOGGED = re.compile(r'\blog\.(?:info|warning|error|exception)\(\s*"(\w+)"')


def test_page_is_what_the_channels_and_their_tests_say() -> None:
    page = pages.read(DOCS / "platforms.md")
    assert page == platforms.render(), "make it anew: python -m tests.platforms > docs/platforms.md"


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_log_of_a_platform_is_explained_on_its_own_page_or_where_all_is(folder: Path) -> None:
    source = "\n".join(file.read_text(encoding="utf-8") for file in folder.glob("*.py"))
    own = [page for page in DOCS.glob("*.md") if folder.name.startswith(page.stem)]
    explained = [event for page in (*own, DOCS / "embedding.md") for event in ROW.findall(pages.read(page))]
    assert set(LOGGED.findall(source)) <= set(explained)
