"""Who is blamed when the process dies."""

from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from frontdesk import Platform, SessionSource
from frontdesk.model import turns
from frontdesk.model.turns import Turn, TurnState

NOW = datetime(2026, 1, 1, tzinfo=UTC)
LONGEST_SECONDS = 5_000


class Machine:
    """A process that dies of some turns and is started again; a second is a step. What is begun again runs
    beside the others as the rules allow."""

    def __init__(self, lengths: list[int], killers: set[int]) -> None:
        source = SessionSource(platform=Platform.WEBHOOK, chat_id="c")
        self.turns = {
            name: Turn(id=str(name), session_key="k", source=source, text="", received_at=NOW)
            for name in range(len(lengths))
        }
        self.lengths = lengths
        self.killers = killers
        self.ran: dict[int, int] = {}
        self.deaths = 0
        self.seconds = 0

    def run(self) -> None:
        while any(turn.state not in turns.FINISHED for turn in self.turns.values()):
            self.seconds += 1
            assert self.seconds < LONGEST_SECONDS
            self.claim()
            self._step()

    def claim(self) -> None:
        for name, turn in self.turns.items():
            if turn.state is not TurnState.QUEUED:
                continue
            begun = replace(
                turn, state=TurnState.RUNNING, attempts=turn.attempts + 1, on_trial=turn.tries > 0
            )
            if begun.tries > turns.MAX_ATTEMPTS:
                self.turns[name] = replace(turn, state=TurnState.SET_ASIDE)
            elif begun.may_begin_beside(self.turns[other] for other in self.ran):
                self.turns[name] = begun
                self.ran[name] = 0

    def _step(self) -> None:
        for name in list(self.ran):
            self.ran[name] += 1
            if self.ran[name] >= turns.TRIAL_SECONDS:
                self.turns[name] = replace(self.turns[name], on_trial=False)
        if any(name in self.killers and self.ran[name] >= self.lengths[name] for name in self.ran):
            self.die()
        for name in [name for name in self.ran if self.ran[name] >= self.lengths[name]]:
            self.turns[name] = replace(self.turns[name], state=TurnState.DONE)
            del self.ran[name]

    def die(self) -> None:
        self.deaths += 1
        verdict = turns.judge([self.turns[name] for name in self.ran])
        for name in self.ran:
            turn = self.turns[name]
            excused, doubted = turn.id in verdict.excused, turn.id in verdict.doubted
            self.turns[name] = replace(
                turn,
                state=TurnState.QUEUED,
                on_trial=False,
                put_backs=turn.put_backs + excused,
                doubts=turn.doubts + doubted,
            )
        self.ran.clear()

    def set_aside(self) -> set[int]:
        return {name for name, turn in self.turns.items() if turn.state is TurnState.SET_ASIDE}


@given(st.lists(st.tuples(st.booleans(), st.integers(1, 9), st.integers(1, 120)), min_size=1, max_size=12))
def test_whoever_kills_within_the_trial_is_set_aside_and_nobody_else(
    drawn: list[tuple[bool, int, int]],
) -> None:
    killers = {name for name, (kills, _, _) in enumerate(drawn) if kills}
    machine = Machine([soon if kills else length for kills, soon, length in drawn], killers)
    machine.run()
    assert machine.set_aside() == killers
    assert machine.deaths <= (turns.MAX_ATTEMPTS + len(killers) if killers else 0)


@given(st.integers(1, 400))
def test_lonely_killer_is_given_three_attempts_however_long_it_takes(seconds: int) -> None:
    machine = Machine([seconds], {0})
    machine.run()
    assert (machine.set_aside(), machine.deaths) == ({0}, turns.MAX_ATTEMPTS)


@given(st.lists(st.integers(1, 600), min_size=1, max_size=6), st.integers(10, 400))
def test_killer_that_takes_long_is_set_aside_in_any_company(lengths: list[int], seconds: int) -> None:
    """Another one may be taken for it, which is on trial just then."""
    machine = Machine([seconds, *lengths], {0})
    machine.run()
    assert 0 in machine.set_aside()
    assert machine.deaths <= turns.MAX_ATTEMPTS + turns.MOST_DOUBTS + len(lengths)


def test_twenty_turns_after_two_deaths_take_as_long_as_one() -> None:
    machine = Machine([4] * 20, set())
    for _ in range(2):
        machine.claim()
        machine.die()
    machine.run()
    assert machine.seconds <= 5
    assert not machine.set_aside()
