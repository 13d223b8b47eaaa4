"""Manifests and trees: what is written is read back, whatever the names are."""

import os

from hypothesis import given
from hypothesis import strategies as st

from frontdesk.model.checkpoints import ChangeKind, FileChange, SkipReason
from frontdesk.snapshots import trees
from frontdesk.snapshots.trees import Entry, Kind

OID = "0" * 39 + "1"
NAMES = st.binary(min_size=1, max_size=20).filter(lambda name: b"\0" not in name).map(os.fsdecode)
ENTRIES = st.builds(
    Entry,
    st.sampled_from(Kind),
    st.integers(0, 0o7777),
    st.integers(0, 2**40),
    st.sampled_from(["", OID]),
)


@given(st.dictionaries(NAMES, ENTRIES))
def test_manifest_is_read_back_as_it_was(entries: dict[str, Entry]) -> None:
    assert trees.decode_manifest(trees.encode_manifest(entries)) == entries


@given(st.dictionaries(NAMES, ENTRIES))
def test_manifest_does_not_depend_on_the_order_of_the_entries(entries: dict[str, Entry]) -> None:
    turned = dict(reversed(entries.items()))
    assert trees.encode_manifest(turned) == trees.encode_manifest(entries)


@given(st.dictionaries(NAMES, st.sampled_from(SkipReason)))
def test_skipped_paths_are_read_back_as_they_were(skipped: dict[str, SkipReason]) -> None:
    assert trees.decode_skipped(trees.encode_skipped(skipped)) == skipped


@given(NAMES)
def test_any_name_can_be_shown(name: str) -> None:
    trees.readable(name).encode("utf-8")


def test_blob_has_the_name_that_git_gives_it() -> None:
    assert trees.blob_id(b"hello\n") == "ce013625030ba8dba906f756967f9e9ca394464a"


def test_tree_without_files_has_the_name_that_git_gives_the_empty_tree() -> None:
    texts, _ = trees.git_trees({}, OID, OID)
    assert texts[0] == b"\0"
    assert b"040000 tree 4b825dc642cb6eb9a060e54bf8d69288fbee4904\tfiles\0" in texts[-1]


def test_changes_say_what_became_of_each_path() -> None:
    file = Entry(Kind.FILE, 0o644, 1, OID)
    before = {"gone": file, "mode": file, "same": file, "type": file}
    after = {"mode": file._replace(mode=0o600), "new": file, "same": file, "type": Entry(Kind.FOLDER, 0o755)}
    assert list(trees.compare(before, after)) == [
        FileChange("gone", ChangeKind.REMOVED),
        FileChange("mode", ChangeKind.PERMISSIONS),
        FileChange("new", ChangeKind.ADDED),
        FileChange("type", ChangeKind.CHANGED),
    ]


def test_ancestors_are_the_folders_above_the_nearest_first() -> None:
    assert list(trees.ancestors("a/b/c")) == ["a/b", "a"]
