"""An engine that notes how much each of its answers weighs."""

from collections.abc import Callable
from typing import Any

from frontdesk.contracts.store import Work


class WeighingEngine:
    """Another engine, and how many bytes of content each answer had."""

    def __init__(self, engine: Any) -> None:
        self._engine = engine
        self.answers: list[int] = []

    def read(self, start: Callable[[], Work[Any]]) -> Any:
        return self._engine.read(lambda: self._weigh(start()))

    def try_glance(self, start: Callable[[], Work[Any]]) -> Any:
        return self._engine.try_glance(lambda: self._weigh(start()))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)

    def _weigh(self, work: Work[Any]) -> Work[Any]:
        answer: Any = None
        while True:
            try:
                asked = work.send(answer)
            except StopIteration as ended:
                return ended.value
            answer = yield asked
            values = [value for row in answer or () for value in row]
            self.answers.append(sum(len(each) for each in values if isinstance(each, bytes)))
