"""What is known of files from the last look."""

from pathlib import Path

import pytest

from frontdesk.snapshots import caches
from frontdesk.snapshots.caches import Cache
from frontdesk.snapshots.folders import Stamp

STAMP = Stamp(1, 2, 3, 4)
OID = "0" * 40


def test_cache_is_read_back_as_it_was(tmp_path: Path) -> None:
    Cache({"a b\n\udcff": (STAMP, OID)}).write(tmp_path / "cache")
    assert caches.read_cache(tmp_path / "cache").look_up("a b\n\udcff", STAMP) == OID


def test_another_stamp_is_another_file() -> None:
    assert Cache({"a": (STAMP, OID)}).look_up("a", STAMP._replace(changed_ns=5)) is None


@pytest.mark.parametrize("damaged", [b"", b"\x00", b"\x92\x02\x90", b"nonsense"])
def test_damaged_cache_knows_nothing(tmp_path: Path, damaged: bytes) -> None:
    (tmp_path / "cache").write_bytes(damaged)
    assert not caches.read_cache(tmp_path / "cache")


def test_file_that_changed_just_now_has_to_be_read_again() -> None:
    now = 10 * caches.SETTLED_NS
    young, old = Stamp(1, 2, now, 3), Stamp(1, 2, 3, now - caches.SETTLED_NS - 1)
    assert caches.settled(young, now) == caches.UNSETTLED
    assert caches.settled(old, now) == old


def test_part_of_a_cache_names_only_the_given_contents() -> None:
    cache = Cache({"a": (STAMP, OID), "b": (STAMP, "1" * 40)})
    assert cache.of({OID}).known == {OID}
