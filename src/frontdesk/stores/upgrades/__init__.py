"""What SQL alone cannot do in a migration. A script names the step after it: ``-- step: name``."""

import re
from collections.abc import Callable

from frontdesk.contracts.store import Work
from frontdesk.stores.sql import Query, load_queries
from frontdesk.stores.upgrades import marks, titles

Step = Callable[[], Work[None]]

STEPS: dict[str, Step] = {"mark_keys": marks.mark_keys, "fold_titles": titles.fold_titles}
FOLDER = "upgrades"

_STEP = re.compile(r"^-- step: (\w+)$", re.MULTILINE)


def steps_after(script: str) -> list[Step]:
    """What is to be done, in the same transaction, once the script has been run."""
    return [STEPS[name] for name in _STEP.findall(script)]


def load_step_queries(dialect: str) -> dict[str, Query]:
    """The queries of all steps; each is about the schema that its script leaves behind."""
    return load_queries(dialect, FOLDER)
