"""Whatever changes what people see is told by the feed, in the same transaction."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import frontdesk.stores

STORES = Path(frontdesk.stores.__file__).parent
PACKAGE = "frontdesk.stores"
TELLING = {"tell_feed", "tell_turns", "tell_confirmation"}
"""The statements that write into the feed."""
WRITING = {"writes", "writes_lazily"}

NOBODY_SEES = {
    "Buttons.prune": "their time was over long ago",
    "BackgroundWork.prune": "its time was over, which is seen without it",
    "Confirmations.claim_callbacks": "what is owed to programs is counted, and looked up",
    "Confirmations.retry_callback": "what is owed to programs is counted, and looked up",
    "Confirmations.hasten_callbacks": "what is owed to programs is counted, and looked up",
    "Confirmations.drop_callback": "what is owed to programs is counted, and looked up",
    "SweepIntentions.prune_keys": "keys are known to whoever made them",
    "Cursors.move": "how far a platform was read is nobody's row",
    "Cursors.take": "who reads a platform is nobody's row",
    "Cursors.release": "who reads a platform is nobody's row",
    "Deliveries.prune": "it arrived long ago, and falls off the end of lists",
    "Deliveries._bring_forward": "it is sent at once, and that is told",
    "Feed.prune": "it is the feed",
    "Files.keep": "its turn's rows are told",
    "Files.bring": "whoever brings it is answered, and nobody else sees it",
    "Files.drop": "whoever brought it is answered, and nobody else sees it",
    "Files.assign": "its turn's rows are told",
    "Files.forget": "its session has ended, which is told",
    "Files.prune": "it came long ago, and falls off the end of lists",
    "KeyedCalls.claim": "keys are known to whoever made them",
    "KeyedCalls.answer": "keys are known to whoever made them",
    "KeyedCalls.drop": "keys are known to whoever made them",
    "Seals.keep": "nobody sees it",
    "Passes.touch": "when it was used last is looked up",
    "People.take_quota": "what was taken in is a turn, which is told",
    "Index._catch_up": "what is found is looked up",
    "Index._clear": "what is found is looked up",
    "NameLists.follow_names": "what is found is looked up",
    "PostgresNodes._is_unlocked": "it writes nothing",
    "StandingIntentions.guard": "triggers are no rows",
    "Sessions.finalize": "the turn that does it is told",
    "Sessions.touch": "the turn that did it is told",
    "Turns.acquit": "whom the gateway would blame is nobody's row",
    "Turns.keep_draft": "it is seen where it stands, in the chat",
    "Turns.release": "its turn has ended, which was told",
    "Turns.interrupt": "that it ends is told",
    "Turns.hasten": "that it begins is told",
    "Turns.renew": "leases are looked up",
    "UsageFigures.fold": "the sums are the same before and after",
    "Turns.prune": "it ended long ago, and falls off the end of lists",
}
"""Intentions that write and tell nothing, and why that is well."""


class Source:
    """The functions of the store, and what each of them yields from."""

    def __init__(self) -> None:
        self.functions: dict[str, ast.FunctionDef | ast.AsyncFunctionDef] = {}
        self.intentions: list[str] = []
        self._names: dict[str, dict[str, str]] = {}
        for file in sorted(STORES.rglob("*.py")):
            parts = file.relative_to(STORES).with_suffix("").parts
            self._read(ast.parse(file.read_text()), ".".join([PACKAGE, *parts]).removesuffix(".__init__"))

    def _read(self, tree: ast.Module, module: str) -> None:
        names = self._names[module] = {}
        for node in tree.body:
            match node:
                case ast.ImportFrom(module=str(source)) if source.startswith(PACKAGE):
                    names |= {each.asname or each.name: f"{source}.{each.name}" for each in node.names}
                case ast.FunctionDef(name=name):
                    names[name] = f"{module}.{name}"
                    self.functions[f"{module}.{name}"] = node
                case ast.ClassDef():
                    self._read_class(node, module)

    def _read_class(self, node: ast.ClassDef, module: str) -> None:
        for each in node.body:
            if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef):
                name = f"{module}.{node.name}.{each.name}"
                self.functions[name] = each
                decorated = {mark.id for mark in each.decorator_list if isinstance(mark, ast.Name)}
                if decorated & WRITING or _calls_engine(each):
                    self.intentions.append(name)

    def tells(self, name: str, seen: frozenset[str] = frozenset()) -> bool:
        """Whether a function, or one that it goes through, writes into the feed."""
        function = self.functions.get(name)
        if function is None or name in seen:
            return False
        module = name.rpartition(".")[0]
        module = module if module in self._names else module.rpartition(".")[0]
        return any(
            node.value in TELLING
            if isinstance(node, ast.Constant)
            else any(self.tells(each, seen | {name}) for each in self._meant(node, module, name))
            for node in ast.walk(function)
            if isinstance(node, ast.Constant | ast.Name | ast.Attribute)
        )

    def _meant(self, node: ast.expr, module: str, name: str) -> Iterator[str]:
        names = self._names[module]
        match node:
            case ast.Name(id=called) if called in names:
                yield names[called]
            case ast.Attribute(value=ast.Name(id="self"), attr=called):
                yield f"{name.rpartition('.')[0]}.{called}"
            case ast.Attribute(value=ast.Name(id=called), attr=attribute) if called in names:
                yield f"{names[called]}.{attribute}"


def _calls_engine(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Whether it has the engine write by itself."""
    return any(
        isinstance(node, ast.Attribute) and node.attr in ("write", "post") and _is_engine(node.value)
        for node in ast.walk(function)
    )


def _is_engine(node: ast.expr) -> bool:
    return isinstance(node, ast.Attribute) and node.attr == "_engine"


SOURCE = Source()
INTENTIONS = {".".join(name.split(".")[-2:]): name for name in SOURCE.intentions}


def test_every_noun_that_writes_is_looked_at() -> None:
    nouns = {name.partition(".")[0] for name in INTENTIONS}
    assert {"Turns", "Sessions", "Transcripts", "Deliveries", "People", "SweepIntentions", "Feed"} <= nouns
    assert len(INTENTIONS) == len(SOURCE.intentions)


@pytest.mark.parametrize("intention", sorted(INTENTIONS))
def test_what_people_see_is_told(intention: str) -> None:
    assert SOURCE.tells(INTENTIONS[intention]) != (intention in NOBODY_SEES), NOBODY_SEES.get(intention)


def test_only_what_there_is_goes_unseen() -> None:
    assert set(NOBODY_SEES) <= set(INTENTIONS)
