"""What of a text looks drawn by chance, as keys and tokens are: nobody would have called anything so.

Names are made of words: ``customers_prod``, ``db-eu-1``, ``dropAllTables2``. Chance changes between capitals,
small letters and digits every other character.
"""

import re
from itertools import pairwise

from frontdesk.formats.words import Interval, merge

SHORTEST = 8
"""Anything shorter is no secret worth the name, and may be one of something else."""
LONG = 16
RUN, LONG_RUN = 2.5, 4.0
"""So many characters of one kind in a row are usual in words; in a long piece more."""

_PIECE = re.compile(r"[^\W_]+")
_RUNS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+|[0-9]+|[^A-Za-z0-9]+")
_TOKEN = re.compile(r"[A-Za-z0-9._~+/=-]+")
_JOINT = re.compile(r"[\W_]?")


def random_parts(text: str) -> list[Interval]:
    """Where it looks so: all of a token when every piece of it does, else the pieces that do."""
    pieces = [*_PIECE.finditer(text)]
    found = [piece.span() for piece in pieces if _is_random(piece[0])]
    if found and len(found) == len(pieces) and _TOKEN.fullmatch(text):
        return [(0, len(text))]
    # Those that one sign stands between are one.
    joints = [(end, start) for (_, end), (start, _) in pairwise(found) if _JOINT.fullmatch(text, end, start)]
    return merge([*found, *joints])


def _is_random(piece: str) -> bool:
    if len(piece) < SHORTEST or not piece.isascii() or piece.isdecimal():
        return False
    usual = LONG_RUN if len(piece) >= LONG else RUN
    return len(piece) / len(_RUNS.findall(piece)) < usual
