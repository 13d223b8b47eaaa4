"""Titles are found by what makes two of them the same now."""

from frontdesk.contracts.store import Work
from frontdesk.model.titles import title_key

BATCH_ROWS = 2_000


def fold_titles() -> Work[None]:
    """Write down what each title is found by. Of two that are the same now, one keeps what it had."""
    after = ""
    while batch := (yield "titled_sessions", {"after": after, "limit": BATCH_ROWS}):
        for identifier, title, known in batch:
            if title_key(title) != known:
                yield "fold_title", {"session_id": identifier, "title_key": title_key(title)}
        after = batch[-1][0]
