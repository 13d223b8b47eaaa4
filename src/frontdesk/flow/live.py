"""Following a turn while it runs here. What is said this way is said a second time in the store."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from io import StringIO

from frontdesk.contracts.bells import Bell
from frontdesk.model import events

MAX_EVENTS = 10_000
MAX_CHARACTERS = 4_000_000


class Pile:
    """What happened, in order, with texts that follow each other as one.

    When it is too much there is nothing in it but Missed, whatever may still come: never a hole.
    """

    def __init__(self) -> None:
        self._events: list[events.Event] = []
        self._text = StringIO()
        self._characters = 0
        self._full = False

    def put(self, event: events.Event) -> None:
        if self._full:
            return
        self._characters += _size(event)
        if isinstance(event, events.Missed):
            self._give_up()
        elif isinstance(event, events.Text):
            self._text.write(event.text)
        else:
            self._close_text()
            self._events.append(event)
        if self._characters > MAX_CHARACTERS or len(self._events) > MAX_EVENTS:
            self._give_up()

    def look(self) -> Sequence[events.Event]:
        """All that is there."""
        self._close_text()
        return tuple(self._events)

    def take(self) -> Sequence[events.Event]:
        """All that is there, once."""
        taken = self.look()
        self._events, self._characters = [], 0
        return taken

    def _close_text(self) -> None:
        if text := self._text.getvalue():
            self._events.append(events.Text(text=text))
            self._text = StringIO()

    def _give_up(self) -> None:
        self._full = True
        self._events, self._text = [events.Missed()], StringIO()


class Heard:
    """What somebody who follows has not read yet. Whoever does not keep up is told so by Missed."""

    def __init__(self, bell: Bell) -> None:
        self._bell = bell
        self._unread = Pile()

    def put(self, event: events.Event | None) -> None:
        if event is not None:
            self._unread.put(event)
        self._bell.ring()

    def drain(self) -> Iterator[events.Event]:
        while unread := self._unread.take():
            yield from unread


class Live:
    def __init__(self) -> None:
        self._followers: dict[str, set[Heard]] = {}
        self._told: dict[str, Pile] = {}
        """What has happened so far in the turns that run here, for who joins later."""

    def begin(self, turn_id: str, attempt: int = 1) -> None:
        """A turn begins to run here; who follows it is told when it did before."""
        self._told[turn_id] = Pile()
        for heard in self._followers.get(turn_id, ()) if attempt > 1 else ():
            heard.put(events.Restarted())

    @contextmanager
    def listening(self, turn_id: str, bell: Bell) -> Iterator[Heard]:
        """What happens in a turn, from its beginning; the bell rings when there is something."""
        heard = Heard(bell)
        for event in self._told[turn_id].look() if turn_id in self._told else ():
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
        else:
            if turn_id not in self._told:
                self._told[turn_id] = Pile()
            self._told[turn_id].put(event)
        for heard in self._followers.get(turn_id, ()):
            heard.put(event)


def _size(event: events.Event) -> int:
    """About how many characters it holds."""
    match event:
        case events.Text(text=text) | events.Summary(text=text):
            return len(text)
        case events.Calls(calls=calls):
            return sum(len(call.arguments) for call in calls)
        case events.Result(content=str() as content):
            return len(content)
        case events.Result(content=parts):
            return sum(len(str(part)) for part in parts)
    return 0
