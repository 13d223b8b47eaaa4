"""The options of an agent that is a Python function."""

from typing import Annotated

import msgspec


class Options(msgspec.Struct, frozen=True, kw_only=True):
    target: str
    """`package.module:name`."""
    steers: bool = False
    """The function takes Steer signals from the line."""
    stops: bool = False
    """The function ends by itself when it is to stop. Otherwise it is cancelled where it waits."""
    models: bool = False
    """The function heeds the `model` of its turn. Otherwise nobody can choose one with /model."""
    max_threads: Annotated[int, msgspec.Meta(ge=1)] = 32
    """How many plain functions may run at once; one that was given up counts until it returns."""
