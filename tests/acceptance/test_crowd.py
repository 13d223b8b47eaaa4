"""Two thousand connections that say little or never end, against the program with a usual number of files."""

from pathlib import Path

import pytest

from tests import counts
from tests.acceptance import crowd, crowds

MOST_TOLD = 3
"""Times that the log has of all that are cut off: one a minute."""


ALL = ""
KINDS = [ALL, *(each.__name__ for each in crowd.KINDS)]


@pytest.mark.parametrize("kind", KINDS[: counts.count(1, len(KINDS))])
def test_owner_and_a_token_are_answered_in_a_crowd(kind: str, tmp_path: Path) -> None:
    with crowds.limited_service(tmp_path) as service, crowds.crowd_at(service.url, kind) as there:
        answers = [(crowds.ask_as_approver(service), crowds.ask_as_owner(service)) for _ in range(10)]
        assert there.poll() is None
    assert answers == [(200, 200)] * len(answers)
    told = (tmp_path / "log").read_text()
    assert 1 <= told.count("event=connections_refused") <= MOST_TOLD, told
