"""What SQL alone cannot do in a migration. A script names the step after it: ``-- step: name``."""

import re
from collections.abc import Callable

from frontdesk.stores.sql import Query, load_queries
from frontdesk.stores.upgrades import marks
from frontdesk.stores.work import Work

STEPS: dict[str, Callable[[], Work[None]]] = {"mark_keys": marks.mark_keys}
FOLDER = "upgrades"

_STEP = re.compile(r"^-- step: (\w+)$", re.MULTILINE)


def step_after(script: str) -> Callable[[], Work[None]] | None:
    """What is to be done, in the same transaction, once the script has been run."""
    found = _STEP.search(script)
    return STEPS[found[1]] if found else None


def load_step_queries(dialect: str, adapt: Callable[[str], str]) -> dict[str, Query]:
    """The queries of all steps; each is about the schema that its script leaves behind."""
    return load_queries(dialect, adapt, FOLDER)
