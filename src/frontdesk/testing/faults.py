"""What goes wrong with the calls to a stand-in, for as often as it was told."""

from collections.abc import Callable
from typing import Protocol, TypeVar


class CountedFault(Protocol):
    times: int | None
    """How often; None: always."""


Fault = TypeVar("Fault", bound=CountedFault)


def take(faults: list[Fault], concerns: Callable[[Fault], bool]) -> Fault | None:
    """The first of them that concerns a call; it goes with its last time."""
    fault = next(filter(concerns, faults), None)
    if fault is not None and fault.times is not None:
        fault.times -= 1
        if fault.times <= 0:
            faults.remove(fault)
    return fault
