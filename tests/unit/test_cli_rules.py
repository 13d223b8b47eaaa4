"""``frontdesk confirm rules add``: what makes no sense is refused before anybody is asked."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from frontdesk.cli import main


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["allow", "--action", "x"], "needs an end"),
        (["allow", "--expires-in", "1h"], "needs --action or --digest"),
        (["allow", "--action", "x", "--expires-in", "-1h"], "use 30m, 12h or 7d"),
        (["deny", "--action", " "], "'--action': it is blank"),
        (["deny", "--session", " "], "'--session': it is blank"),
        (["deny", "--digest", "abc"], "64 signs"),
        (["deny", "--action", "x", "--quorum", "2"], "--quorum: only a rule that asks has terms"),
        (["deny", "--where", "amount>much"], "only a number"),
        (["deny", "--where", "a..b=1"], "use ARGUMENT"),
        (["ask", "--quorum", "0"], "not in the range"),
        (["ask", "--quorum", "21"], "not in the range"),
        (["ask", "--quorum", "2", "--approver", "token:ann"], "1 named with --approver"),
        (["ask", "--approver", "ann"], "'ann' is no name of an approver"),
        (["ask", "--escalate-after", "3600"], "not in the range"),
        (["ask", "--escalate-after", "60", "--escalate-to", "token:bob"], "goes with --approver"),
        (["ask", "--approver", "token:ann", "--escalate-to", "token:bob"], "and --escalate-after"),
    ],
)
def test_rule_that_makes_no_sense_is_refused(tmp_path: Path, arguments: list[str], why: str) -> None:
    told = CliRunner(env={"FRONTDESK_HOME": str(tmp_path)}).invoke(
        main, ["confirm", "rules", "add", *arguments]
    )
    assert told.exit_code == 2
    assert why in " ".join(told.output.split())
