"""Following a turn while it runs here. What is said this way is said a second time in the store."""

from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager

from frontdesk.contracts.bells import Bell
from frontdesk.model import events

MAX_UNREAD_EVENTS = 10_000


class Heard:
    """What somebody who follows has not read yet. Whoever does not keep up finds the rest in the store."""

    def __init__(self, bell: Bell) -> None:
        self._bell = bell
        self._unread: deque[events.Event] = deque(maxlen=MAX_UNREAD_EVENTS)

    def put(self, event: events.Event | None) -> None:
        if event is not None:
            self._unread.append(event)
        self._bell.ring()

    def drain(self) -> Iterator[events.Event]:
        while self._unread:
            yield self._unread.popleft()


class Live:
    def __init__(self) -> None:
        self._followers: dict[str, set[Heard]] = {}
        self._told: dict[str, list[events.Event]] = {}
        """What has happened so far in the turns that run here, for who joins later."""

    def begin(self, turn_id: str) -> None:
        """A turn begins to run here, perhaps once more."""
        self._told[turn_id] = []

    @contextmanager
    def listening(self, turn_id: str, bell: Bell) -> Iterator[Heard]:
        """What happens in a turn, from its beginning; the bell rings when there is something."""
        heard = Heard(bell)
        for event in self._told.get(turn_id, ()):
            heard.put(event)
        self._followers.setdefault(turn_id, set()).add(heard)
        try:
            yield heard
        finally:
            followers = self._followers[turn_id]
            followers.discard(heard)
            if not followers:
                del self._followers[turn_id]

    def tell(self, turn_id: str, event: events.Event | None) -> None:
        """Something happened, or (None) the turn has ended here."""
        if event is None:
            self._told.pop(turn_id, None)
        elif len(told := self._told.setdefault(turn_id, [])) < MAX_UNREAD_EVENTS:
            told.append(event)
        for heard in self._followers.get(turn_id, ()):
            heard.put(event)
