"""Everything that may go wrong is caught at named doors alone."""

import ast
from collections import Counter

from tests.architecture import source

BROAD = {"Exception", "BaseException"}
DOORS = {
    # What others wrote: agents, tools, channels, hooks.
    "agents/bounds.py": 2,
    "agents/openai/tools.py": 1,
    "agents/pydantic_ai/__init__.py": 1,
    "agents/python/__init__.py": 2,
    "app/gateway.py": 1,
    "flow/delivery.py": 1,
    "flow/receiving.py": 1,
    "flow/service.py": 1,
    "flow/signs.py": 1,
    "hooks/__init__.py": 1,
    # Loops that go on with the next item.
    "flow/rounds.py": 1,
    "flow/crew.py": 1,
    "flow/worker.py": 1,
    # What comes beside a turn, and must not end it.
    "flow/hearing.py": 1,
    "flow/drafting.py": 1,
    "flow/prompts.py": 1,
    "flow/rotation.py": 1,
    "flow/runner.py": 1,
    # Work of others, whose error goes back to whoever waits for it.
    "stores/sqlite/readers.py": 1,
    "stores/sqlite/threads.py": 1,
    "stores/sqlite/writer.py": 4,
    # What comes behind a commit, which stands.
    "stores/sqlite/known.py": 1,
    # Whoever calls is told.
    "cli/confirm/protocol.py": 1,
    "web/confirmations/embedded.py": 1,
    "web/middleware.py": 1,
}
"""How many in each file."""


def catches_everything(handler: ast.ExceptHandler) -> bool:
    """Whether it ends there; who tidies up and raises again catches nothing."""
    caught = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    broad = any(kind is None or (isinstance(kind, ast.Name) and kind.id in BROAD) for kind in caught)
    return broad and not isinstance(handler.body[-1], ast.Raise)


def test_everything_is_caught_only_at_named_doors() -> None:
    found = Counter(
        path
        for path, tree in source.files().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.ExceptHandler) and catches_everything(node)
    )
    assert dict(found) == DOORS
