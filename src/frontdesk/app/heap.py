"""Memory of a program that runs for long: what is loaded stays, so the collector need not look at it."""

import gc

YOUNG_OBJECTS = 50_000
"""So many more must be there before they are looked at: else a burst of messages is, at every step."""
YOUNG_ROUNDS = 20
MIDDLE_ROUNDS = 50


def freeze_loaded() -> None:
    gc.collect()
    gc.freeze()
    gc.set_threshold(YOUNG_OBJECTS, YOUNG_ROUNDS, MIDDLE_ROUNDS)
