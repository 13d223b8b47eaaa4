"""What somebody means by /resume is looked up behind locks, and looked at again once they are there."""

from datetime import UTC, datetime
from typing import Any

import pytest

from frontdesk.model.people import Viewer
from frontdesk.model.resuming import Wanted
from frontdesk.model.sessions import Session, SessionEntry
from frontdesk.stores.rows import NAMED, session_row
from frontdesk.stores.sessions import _wanted

HERE, ELSEWHERE = "agent:main:telegram:group:1:7", "agent:main:telegram:dm:7"
NOW = datetime(2026, 1, 1, tzinfo=UTC)


def row_of(session: Session) -> tuple[Any, ...]:
    values = (
        dict.fromkeys(NAMED["session"], 0) | {"title": "Trip", "cost_status": None} | session_row(session)
    )
    return tuple(values[name] for name in NAMED["session"])


@pytest.mark.parametrize(("key", "is_found"), [(HERE, True), (ELSEWHERE, False)])
def test_number_means_nothing_that_was_taken_elsewhere_meanwhile(key: str, is_found: bool) -> None:
    entry = SessionEntry(
        session_key=HERE, session_id="20260101_000000_abcdef12", created_at=NOW, updated_at=NOW
    )
    listed = Session(entry=entry, owner="telegram:7", peer="")
    work = _wanted(Wanted(number=1), Viewer(frozenset({"telegram:7"}), chat=HERE))
    assert next(work)[0] == "list_owned"
    assert work.send([row_of(listed)])[0] == "session_locked"
    with pytest.raises(StopIteration) as ended:
        work.send([row_of(listed.changed(session_key=key))])
    assert (ended.value.value is not None) is is_found
