"""What was written at the prompt, from one chat to the next."""

import stat
from pathlib import Path

from frontdesk.cli.chat.history import MAX_ENTRIES, MAX_ENTRY_CHARACTERS, KeptHistory


def kept(file: Path) -> list[str]:
    return list(KeptHistory(file).load_history_strings())


def test_newest_comes_first_and_lines_stay_together(tmp_path: Path) -> None:
    file = tmp_path / "history"
    KeptHistory(file).store_string("one")
    KeptHistory(file).store_string("two\nlines")
    assert kept(file) == ["two\nlines", "one"]


def test_only_the_owner_may_read_it(tmp_path: Path) -> None:
    file = tmp_path / "history"
    file.touch(0o644)
    KeptHistory(file).store_string("secret")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_file_does_not_grow_for_ever(tmp_path: Path) -> None:
    file = tmp_path / "history"
    file.write_text("".join(f'"{number}"\n' for number in range(2 * MAX_ENTRIES + 1)))
    assert len(kept(file)) == MAX_ENTRIES
    assert len(file.read_text().splitlines()) == MAX_ENTRIES
    assert kept(file)[0] == str(2 * MAX_ENTRIES)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_damaged_lines_are_left_out(tmp_path: Path) -> None:
    file = tmp_path / "history"
    file.write_bytes(b'"one"\n\xff\xfe\n{}\n"two"\n"half')
    assert kept(file) == ["two", "one"]


def test_what_cannot_be_written_or_is_too_long_is_not_kept(tmp_path: Path) -> None:
    KeptHistory(tmp_path / "none" / "history").store_string("lost")
    assert kept(tmp_path / "none" / "history") == []
    KeptHistory(tmp_path / "history").store_string("x" * (MAX_ENTRY_CHARACTERS + 1))
    KeptHistory(tmp_path / "history").store_string("half a character: \udc80")
    assert kept(tmp_path / "history") == ["half a character: ?"]
