"""What a restore will do, decided before anything is done."""

from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from frontdesk import errors
from frontdesk.model.checkpoints import SkipReason
from frontdesk.snapshots.trees import Entries, Kind, ancestors, readable


class Plan(NamedTuple):
    """Paths, in the order of doing."""

    removals: list[str]
    folders: list[str]
    writes: list[str]
    modes: list[str]


class RestoreSituation(NamedTuple):
    """What is wanted, what is there, and what was left out of either."""

    wanted: Entries
    present: Entries
    skipped_then: Collection[str]
    skipped_now: Mapping[str, SkipReason]


def make_plan(situation: RestoreSituation, within: str | None = None) -> Plan:
    """How to get from what is there to what is wanted, leaving alone whatever was or is left out."""
    wanted = [path for path in situation.wanted if _is_within(path, within)]
    above = list(ancestors(within)) if within else []
    _check_way(situation, wanted, above)
    present = (path for path in situation.present if _is_within(path, within))
    folders = sorted(_missing_folders(situation, [*wanted, *above]))
    changed = {path for path in wanted if situation.wanted[path] != situation.present.get(path)}.union(
        folders
    )
    return Plan(
        removals=sorted(_removals(situation, present), reverse=True),
        folders=folders,
        writes=sorted(path for path in changed if _must_write(situation, path)),
        modes=sorted((path for path in changed if _must_set_mode(situation, path)), reverse=True),
    )


def _is_within(path: str, within: str | None) -> bool:
    return within is None or path == within or path.startswith(f"{within}/")


def _check_way(situation: RestoreSituation, wanted: list[str], above: list[str]) -> None:
    holders = {folder for path in situation.skipped_now for folder in ancestors(path)}
    for path in wanted:
        for each in (path, *ancestors(path)):
            reason = situation.skipped_now.get(each)
            if reason:
                why = f"it cannot be kept for going back, being {reason}"
                raise errors.RestoreBlocked(path=readable(each), why=why)
        if path in holders and situation.wanted[path].kind is not Kind.FOLDER:
            raise errors.RestoreBlocked(path=readable(path), why="the folder holds what no checkpoint keeps")
    for path in above:
        found = situation.present.get(path)
        if found and found.kind is not Kind.FOLDER:
            raise errors.RestoreBlocked(path=readable(path), why="it is no folder any more")


def _removals(situation: RestoreSituation, present: Iterable[str]) -> Iterable[str]:
    alone = {*situation.skipped_then, *situation.skipped_now}
    holders = {folder for path in alone for folder in ancestors(path)}
    for path in present:
        wanted = situation.wanted.get(path)
        if wanted is None:
            if path not in holders and path not in alone and alone.isdisjoint(ancestors(path)):
                yield path
        elif Kind.FOLDER in (kinds := {wanted.kind, situation.present[path].kind}) and len(kinds) > 1:
            yield path


def _missing_folders(situation: RestoreSituation, paths: Iterable[str]) -> Iterable[str]:
    for path in paths:
        found = situation.present.get(path)
        if situation.wanted[path].kind is Kind.FOLDER and not (found and found.kind is Kind.FOLDER):
            yield path


def _must_write(situation: RestoreSituation, path: str) -> bool:
    wanted, found = situation.wanted[path], situation.present.get(path)
    if wanted.kind is Kind.FOLDER:
        return False
    return found is None or (found.kind, found.oid) != (wanted.kind, wanted.oid)


def _must_set_mode(situation: RestoreSituation, path: str) -> bool:
    """A folder gets its mode at the end, as do files of which only that changed."""
    kind = situation.wanted[path].kind
    return kind is Kind.FOLDER or (kind is Kind.FILE and not _must_write(situation, path))
