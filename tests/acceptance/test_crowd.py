"""Two thousand connections that say little or never end, to the service and its page at once, while it may
have no more files open than the smallest machines give. The owner's socket is out of others' reach."""

from pathlib import Path

import pytest

from tests import counts
from tests.acceptance import crowds, program

ROUNDS = 5
MOST_TOLD = 6
"""Times that the log has of all that are cut off: two ports, and one a minute for each."""


@pytest.mark.parametrize("kind", crowds.KINDS[: counts.count(1, len(crowds.KINDS))])
def test_owner_and_a_token_are_answered_in_a_crowd(kind: str, tmp_path: Path) -> None:
    with crowds.limited_service(tmp_path) as service, crowds.crowd_at(service.ports, kind) as there:
        answers = [
            (service.ask_with_token(), service.ask_as_owner(), service.ask_for_page()) for _ in range(ROUNDS)
        ]
        assert there.poll() is None
        told = program.run(tmp_path, "doctor").stdout
    assert answers == [(200, 200, 401)] * ROUNDS
    assert "256 connections at a time" in told
    assert "too_many_of_one" in told
    log = (tmp_path / "log").read_text()
    assert 1 <= log.count("event=connections_refused") <= MOST_TOLD, log
    assert "level=error" not in log


@pytest.mark.parametrize("files", [64, 256][: counts.count(1, 2)])
def test_few_files_are_enough_for_whoever_has_a_token(files: int, tmp_path: Path) -> None:
    with crowds.limited_service(tmp_path, files) as service:
        with crowds.crowd_at(service.ports, count=500):
            pass
        assert (service.ask_with_token(), service.ask_as_owner(), service.ask_for_page()) == (200, 200, 401)
    assert "event=few_files" in (tmp_path / "log").read_text()
