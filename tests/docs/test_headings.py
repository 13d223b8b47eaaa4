"""Everything public is in the documentation, and its links lead somewhere."""

import inspect
import re
from enum import StrEnum
from pathlib import Path

import click
import msgspec
import pytest

import frontdesk
from frontdesk import (
    GatewayConfig,
    SessionEntry,
    SessionResetPolicy,
    SessionSource,
    SessionStore,
    Usage,
    errors,
)
from frontdesk.cli import main
from frontdesk.flow import finding
from frontdesk.formats import quoting, words
from frontdesk.model import keys, policies, searches, titles
from frontdesk.model.searches import Hit
from frontdesk.stores.postgres import address, connections, engine, retries, schema
from tests.docs import pages

DOCS = pages.ROOT / "docs"
PAGES = pages.all_pages()
TEXT = "\n".join(map(pages.read, PAGES))
ROWS = [line for line in TEXT.splitlines() if line.startswith(("|", "#"))]

ERRORS = [
    name
    for name, found in vars(errors).items()
    if inspect.isclass(found) and issubclass(found, errors.FrontdeskError)
]
METHODS = sorted(
    name for name in dir(SessionStore) if not name.startswith("_") and name not in ("open", "close")
)
CLASSES = (GatewayConfig, SessionEntry, SessionResetPolicy, SessionSource, Usage, Hit)
FIELDS = sorted({name for each in CLASSES for name in each.__struct_fields__})
ENUMS: tuple[type[StrEnum], ...] = (
    frontdesk.ChatType,
    frontdesk.EndReason,
    frontdesk.ResetMode,
    frontdesk.Role,
    keys.KeyRule,
)


@pytest.mark.parametrize("name", ERRORS)
def test_every_error_has_a_heading(name: str) -> None:
    assert name in pages.headings(DOCS / "errors.md")


def test_every_heading_of_the_errors_is_an_error() -> None:
    assert set(pages.headings(DOCS / "errors.md")) == {"Errors", *ERRORS}


def test_every_error_stands_under_what_it_is_one_of() -> None:
    above = root = errors.FrontdeskError
    for marks, name in re.findall(r"^(##+) (\w+)$", pages.read(DOCS / "errors.md"), re.MULTILINE):
        error = getattr(errors, name)
        if marks == "##":
            assert root in (error, *error.__bases__), name
            above = error
        assert issubclass(error, above), name


@pytest.mark.parametrize("name", frontdesk.__all__)
def test_every_public_name_is_mentioned(name: str) -> None:
    assert re.search(rf"\b{name}\b", TEXT)


@pytest.mark.parametrize("name", METHODS)
def test_every_method_of_the_service_has_a_row_or_heading(name: str) -> None:
    assert any(re.search(rf"^(#+|\|) `{name}[(`]", row) for row in ROWS)


def test_every_method_in_a_table_of_methods_exists() -> None:
    tables = re.findall(r"^## Methods$(.*?)(?=^## |\Z)", TEXT, re.MULTILINE | re.DOTALL)
    named = {name for table in tables for name in re.findall(r"^\| `(\w+)", table, re.MULTILINE)}
    assert named == set(METHODS)


@pytest.mark.parametrize("name", FIELDS)
def test_every_field_of_the_records_is_explained(name: str) -> None:
    assert f"`{name}`" in TEXT


@pytest.mark.parametrize("word", [str(word) for each in ENUMS for word in each])
def test_every_word_of_the_enums_is_explained(word: str) -> None:
    assert f"`{word}`" in TEXT or f"| {word} |" in TEXT


@pytest.mark.parametrize("name", main.list_commands(click.Context(main)))
def test_every_command_has_a_heading(name: str) -> None:
    assert f"frontdesk {name}" in pages.headings(DOCS / "cli.md")


def test_every_default_of_the_policy_is_in_its_table() -> None:
    page = pages.read(DOCS / "policies.md")
    for name, value in msgspec.structs.asdict(SessionResetPolicy()).items():
        (row,) = re.findall(rf"^\| `{name}` \| ([^|]+) \|", page, re.MULTILINE)
        assert row.replace("`", "") == shown(value)


def shown(value: object) -> str:
    if isinstance(value, tuple):
        return ", ".join(value)
    return "none" if value is None else str(value).lower()


@pytest.mark.parametrize("page", PAGES, ids=pages.name_of)
def test_every_link_leads_to_a_page_and_a_heading(page: Path) -> None:
    for link in pages.links(page):
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), f"{link}: no such file"
        if anchor:
            assert anchor in pages.anchors(target), f"{link}: no such heading"


def test_every_page_is_in_the_list_of_pages() -> None:
    linked = {link for link in pages.links(DOCS / "index.md") if "#" not in link}
    assert linked == {page.name for page in DOCS.glob("*.md")} - {"index.md"}


BOUNDS = [
    ("stores.md", f"for {retries.OUTAGE_SECONDS:.0f} seconds, then"),
    ("stores.md", f"up to {retries.CONFLICT_ATTEMPTS} times"),
    ("stores.md", f"held for more than {retries.LOCK_SECONDS:.0f} seconds"),
    ("stores.md", f"after {connections.IDLE_TRANSACTION_MILLISECONDS // 1000} second,"),
    ("stores.md", f"may finish, for up to {engine.FINISH_SECONDS:.0f} seconds"),
    ("stores.md", f"Version {schema.OLDEST_SERVER} or newer"),
    (
        "stores.md",
        f"| `pool=N` | {address.POOL} | the most connections of this node at once, 1 to {address.MAX_POOL}",
    ),
    ("stores.md", f"| `schema=NAME` | `{address.SCHEMA}` |"),
    ("policies.md", f"from {policies.NEAR_PERCENT} % of the limit on"),
    ("keys.md", f"{keys.MAX_KEY_BYTES} for a key, {keys.MAX_SESSION_ID_BYTES} for a session"),
    ("context.md", f"cut at {quoting.MAX_CHARACTERS} characters"),
    ("finding.md", f"up to {titles.MAX_TITLE} characters"),
    ("finding.md", f"up to {searches.MAX_HITS}"),
    ("finding.md", f"up to {finding.MAX_AROUND}"),
    ("finding.md", f"longer than {words.MAX_QUERY_CHARACTERS:,} characters"),
    ("finding.md", f"more than {words.MAX_QUERY_WORDS} words"),
    ("sessions.md", f"({GatewayConfig().auto_continue_freshness_seconds}; 0 or less: for ever)"),
]


@pytest.mark.parametrize(("page", "text"), BOUNDS)
def test_bounds_on_the_pages_are_those_of_the_code(page: str, text: str) -> None:
    assert text in pages.read(DOCS / page)


def test_every_table_of_the_stores_is_on_the_page_of_the_design() -> None:
    scripts = (pages.ROOT / "src" / "frontdesk" / "stores").glob("**/migrations/*.sql")
    source = "\n".join(script.read_text(encoding="utf-8") for script in scripts)
    made = set(re.findall(r"^CREATE (?:UNLOGGED |VIRTUAL )?TABLE (\w+)", source, re.MULTILINE))
    gone = set(re.findall(r"^(?:ALTER TABLE (?=\w+ RENAME TO)|DROP TABLE )(\w+)", source, re.MULTILINE))
    renamed = set(re.findall(r" RENAME TO (\w+)", source))
    design = pages.read(DOCS / "design.md")
    assert {name for name in made - gone | renamed if f"`{name}`" not in design} == set()


def test_log_events_are_in_the_table_of_events() -> None:
    files = (file for file in (pages.ROOT / "src").rglob("*.py") if file.name != "logs.py")
    source = "\n".join(file.read_text(encoding="utf-8") for file in files)
    logged = set(re.findall(r'\blog\.(?:info|warning|error|exception)\(\s*"(\w+)"', source))
    logged |= set(re.findall(r'\bgoing_on\((?:failure: str = )?"(\w+)"', source))
    logged |= {f"{kind}_unreadable" for kind in re.findall(r'\bRecords\(\s*"(\w+)"', source)}
    assert logged == set(re.findall(r"^\| `(\w+)` \| (?:info|warning|error) \|", TEXT, re.MULTILINE))
