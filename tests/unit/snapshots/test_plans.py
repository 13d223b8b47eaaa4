"""Plans of restores: what is done, in which order, and what stands in the way."""

from collections.abc import Collection, Mapping

import pytest

from frontdesk import errors
from frontdesk.model.checkpoints import SkipReason
from frontdesk.snapshots.plans import Plan, RestoreSituation, make_plan
from frontdesk.snapshots.trees import Entry, Kind

OLD = Entry(Kind.FILE, 0o644, 1, "0" * 40)
NEW = Entry(Kind.FILE, 0o644, 1, "1" * 40)
LINK = Entry(Kind.LINK, 0, 1, "2" * 40)
FOLDER = Entry(Kind.FOLDER, 0o755)
NOTHING: Mapping[str, SkipReason] = {}


def plan(
    wanted: Mapping[str, Entry],
    present: Mapping[str, Entry],
    *,
    then: Collection[str] = (),
    now: Mapping[str, SkipReason] = NOTHING,
    within: str | None = None,
) -> Plan:
    return make_plan(RestoreSituation(wanted, present, then, now), within)


def test_same_state_needs_nothing() -> None:
    state = {"a": FOLDER, "a/b": OLD, "c": LINK}
    assert plan(state, state) == Plan([], [], [], [])


def test_files_created_since_are_removed_before_their_folder() -> None:
    assert plan({}, {"a": FOLDER, "a/b": OLD}).removals == ["a/b", "a"]


def test_missing_folders_are_made_before_what_is_in_them() -> None:
    made = plan({"a": FOLDER, "a/b": FOLDER, "a/b/c": OLD}, {})
    assert (made.folders, made.writes, made.modes) == (["a", "a/b"], ["a/b/c"], ["a/b", "a"])


def test_folder_that_became_a_file_is_cleared_for_the_folder() -> None:
    made = plan({"a": FOLDER, "a/b": OLD}, {"a": NEW})
    assert (made.removals, made.folders, made.writes) == (["a"], ["a"], ["a/b"])


def test_file_that_became_a_folder_is_cleared_with_its_insides() -> None:
    made = plan({"a": OLD}, {"a": FOLDER, "a/b": NEW})
    assert (made.removals, made.writes) == (["a/b", "a"], ["a"])


def test_file_and_link_take_each_others_place_without_a_removal() -> None:
    assert plan({"a": LINK, "b": OLD}, {"a": OLD, "b": LINK}) == Plan([], [], ["a", "b"], [])


def test_changed_permissions_alone_write_nothing() -> None:
    assert plan({"a": OLD}, {"a": OLD._replace(mode=0o755)}) == Plan([], [], [], ["a"])


def test_what_was_left_out_of_the_checkpoint_is_left_alone() -> None:
    present = {"big": NEW, "out": FOLDER, "out/x": NEW, "c": NEW}
    assert plan({}, present, then=["big", "out"]).removals == ["c"]


def test_folder_that_holds_what_is_left_out_stays() -> None:
    now = {"web/node_modules": SkipReason.GENERATED}
    assert plan({}, {"web": FOLDER, "web/a": NEW}, now=now).removals == ["web/a"]


def test_file_cannot_replace_a_folder_that_holds_what_is_left_out() -> None:
    with pytest.raises(errors.RestoreBlocked, match="web"):
        plan({"web": OLD}, {"web": FOLDER}, now={"web/node_modules": SkipReason.GENERATED})


def test_nothing_is_written_into_what_is_left_out_now() -> None:
    with pytest.raises(errors.RestoreBlocked, match="mount"):
        plan({"a": FOLDER, "a/b": OLD}, {}, now={"a": SkipReason.MOUNT})


def test_one_path_leaves_the_others_alone() -> None:
    made = plan({"a": FOLDER, "a/b": OLD, "c": OLD}, {"c": NEW, "d": NEW}, within="a/b")
    assert made == Plan([], ["a"], ["a/b"], ["a"])


def test_one_folder_is_restored_with_what_is_in_it() -> None:
    made = plan({"a": FOLDER, "a/b": OLD}, {"a": FOLDER, "a/new": NEW, "ab": NEW}, within="a")
    assert made == Plan(["a/new"], [], ["a/b"], [])


def test_path_below_what_is_no_folder_any_more_is_refused() -> None:
    with pytest.raises(errors.RestoreBlocked, match="no folder"):
        plan({"a": FOLDER, "a/b": OLD}, {"a": LINK}, within="a/b")
