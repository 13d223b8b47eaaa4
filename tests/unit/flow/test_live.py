"""Following a turn: everything, or the word that something is missing."""

from frontdesk.flow import speech
from frontdesk.model import events


def unheard() -> None:
    """A bell that nobody waits for."""


def text(words: str) -> events.Text:
    return events.Text(text=words)


def test_unread_texts_are_one_and_keep_their_place() -> None:
    feed = speech.Live()
    feed.begin("t1")
    with feed.listening("t1", unheard) as heard:
        for event in (text("a"), text("b"), events.Done(), text("c")):
            feed.tell("t1", event)
        assert list(heard.drain()) == [text("ab"), events.Done(), text("c")]
        assert list(heard.drain()) == []


def test_no_beginning_is_lost_however_many_pieces_there_are() -> None:
    feed = speech.Live()
    feed.begin("t1")
    with feed.listening("t1", unheard) as early:
        for number in range(3 * speech.MAX_EVENTS):
            feed.tell("t1", text(f"{number} "))
        with feed.listening("t1", unheard) as late:
            (first,), (second,) = list(early.drain()), list(late.drain())
    assert first == second
    assert first == text("".join(f"{number} " for number in range(3 * speech.MAX_EVENTS)))


def test_who_cannot_get_everything_is_told_and_gets_nothing_more() -> None:
    feed = speech.Live()
    feed.begin("t1")
    with feed.listening("t1", unheard) as slow, feed.listening("t1", unheard) as swift:
        feed.tell("t1", text("x" * speech.MAX_CHARACTERS))
        assert len(list(swift.drain())) == 1
        for _ in range(2):
            feed.tell("t1", text("y"))
        assert list(swift.drain()) == [text("yy")]
        with feed.listening("t1", unheard) as late:
            feed.tell("t1", text("z"))
            assert list(late.drain()) == [events.Missed()]
        assert list(slow.drain()) == [events.Missed()]
        feed.tell("t1", text("z"))
        assert list(slow.drain()) == []


def test_many_events_of_other_kinds_are_bounded_too() -> None:
    feed = speech.Live()
    with feed.listening("t1", unheard) as heard:
        for _ in range(speech.MAX_EVENTS + 1):
            feed.tell("t1", events.Done())
        assert list(heard.drain()) == [events.Missed()]


def test_who_follows_is_told_of_another_attempt_and_who_comes_later_need_not() -> None:
    feed = speech.Live()
    feed.begin("t1")
    with feed.listening("t1", unheard) as heard:
        feed.tell("t1", text("Hel"))
        feed.tell("t1", None)
        feed.begin("t1", attempt=2)
        feed.tell("t1", text("Hello"))
        assert list(heard.drain()) == [text("Hel"), events.Restarted(), text("Hello")]
    with feed.listening("t1", unheard) as late:
        assert list(late.drain()) == [text("Hello")]
