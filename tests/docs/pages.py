"""The documentation as the tests read it: pages, fenced blocks, headings, links."""

import re
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
HEADING = re.compile(r"^(#+) (.+)$", re.MULTILINE)
LINK = re.compile(r"\]\((?!https?:)([^)\s]*)\)")
OUTPUT = re.compile(r"^[ ]*#>(?: (.*))?$", re.MULTILINE)


class Block(NamedTuple):
    """A fenced block; ``line`` is where its text begins, counted from 0."""

    language: str
    text: str
    line: int


def all_pages() -> list[Path]:
    return [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def read(page: Path) -> str:
    return page.read_text(encoding="utf-8")


def blocks(page: Path, language: str) -> list[Block]:
    text = read(page)
    found = (Block(fence[1], fence[2], text.count("\n", 0, fence.start(2))) for fence in FENCE.finditer(text))
    return [block for block in found if block.language == language]


def script_of(page: Path) -> str:
    """The page's Python blocks as one script, every line where it stands in the page."""
    lines: list[str] = []
    for block in blocks(page, "python"):
        lines += [""] * (block.line - len(lines)) + block.text.splitlines()
    return "\n".join(lines) + "\n"


def shown_output(page: Path) -> list[str]:
    """What the page says that its script prints: the comments that begin with ``#>``."""
    return [found[1] or "" for found in OUTPUT.finditer(script_of(page))]


def prose(page: Path) -> str:
    """The page without its blocks."""
    return FENCE.sub("", read(page))


def headings(page: Path) -> list[str]:
    return [found[2].strip() for found in HEADING.finditer(prose(page))]


def anchors(page: Path) -> set[str]:
    """The addresses of its headings, as code hosts make them."""
    kept = (re.sub(r"[^\w\- ]", "", heading.lower()) for heading in headings(page))
    return {heading.replace(" ", "-") for heading in kept}


def links(page: Path) -> list[str]:
    """The links that stay within the repository."""
    return LINK.findall(prose(page))
