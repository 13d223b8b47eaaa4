"""What opening a store takes, counted: the files that are read, and what is written before anybody writes."""

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

import frontdesk
from frontdesk import SessionStore
from frontdesk.stores.sqlite import wal, writer
from tests.contracts.samples import direct

QUERIES = [Path(frontdesk.__file__).parent / "stores" / folder for folder in ("queries", "sqlite/queries")]
BEGIN = """
import sys
before = set(sys.modules)
import asyncio, json
from frontdesk import SessionSource, SessionStore, plugins

opened = []
sys.addaudithook(lambda event, given: opened.append(str(given[0])) if event == "open" else None)
"""
FIRST = """
async def main():
    async with await SessionStore.open(sys.argv[1]) as store:
        await store.get_or_create_session(SessionSource(platform="telegram", chat_id="1", user_id="1"))

asyncio.run(main())
print(json.dumps([opened, list(set(sys.modules) - before)]))
"""
PART = """
plugins.load_part("agent", "scripted")
print(json.dumps([opened, list(set(sys.modules) - before)]))
"""
HEAVY = {
    *("asyncpg", "click", "httpx", "jinja2", "starlette", "uvicorn"),
    *("difflib", "email", "importlib.metadata", "importlib.resources", "tempfile", "zipfile"),
}
"""What is for other programs, or for other moments of this one."""


def files_opened(program: str, *arguments: str) -> tuple[Counter[Path], set[str]]:
    """By a program, and the modules that it has loaded."""
    command = [sys.executable, "-c", BEGIN + program, *arguments]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    opened, loaded = json.loads(done.stdout)
    return Counter(map(Path, opened)), set(loaded)


def test_present_store_is_opened_with_its_queries_alone(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/state.db"
    files_opened(FIRST, url)  # makes it
    opened, loaded = files_opened(FIRST, url)
    scripts = {path: times for path, times in opened.items() if path.suffix == ".sql"}
    assert scripts == {path: 1 for folder in QUERIES for path in folder.glob("*.sql")}
    assert [path for path in opened if path.parent.suffix == ".dist-info"] == []
    assert HEAVY & loaded == set()


def test_part_of_ours_is_found_without_reading_other_packages() -> None:
    opened, _ = files_opened(PART)
    read = {path.parent.name for path in opened if path.parent.suffix == ".dist-info"}
    assert {name.partition("-")[0] for name in read} == {"frontdesk"}


async def test_log_is_given_its_size_once_somebody_goes_on_writing(tmp_path: Path) -> None:
    log = tmp_path / "state.db-wal"
    async with await SessionStore.open(f"sqlite:///{tmp_path}/state.db") as store:
        entry = await store.get_or_create_session(direct())
        assert log.stat().st_size < writer.COLD_PAGES * wal.FRAME_BYTES
        for number in range(writer.COLD_PAGES):
            await store.append_to_transcript(entry.session_id, {"role": "user", "content": f"{number}"})
        assert log.stat().st_size >= writer.CHECKPOINT_PAGES * wal.FRAME_BYTES
        assert len(await store.load_transcript(entry.session_id)) == writer.COLD_PAGES
