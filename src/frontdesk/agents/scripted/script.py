"""The small language of the scripted agent."""

import re

import msgspec

from frontdesk import errors

PART = re.compile(r'(?:"(?:\\.|[^"\\])*"|[^;])+', re.DOTALL)
DIRECTIVE = re.compile(r"!([a-z]+)(?:\s+(.*))?", re.DOTALL)
ECHO = "echo"


class Step(msgspec.Struct, frozen=True):
    verb: str
    rest: str = ""

    @property
    def words(self) -> list[str]:
        return self.rest.split()

    def number(self, position: int, default: float | None = None) -> float:
        """A word as a number; InvalidInput when it is none and there is no default."""
        try:
            return float(self.words[position])
        except (IndexError, ValueError):
            if default is not None and len(self.words) <= position:
                return default
            raise errors.InvalidInput(what=f"!{self.verb} {self.rest}", why="a number is missing") from None


def parse_message(text: str) -> list[Step] | None:
    """The steps that a message asks for; None when there is no directive in it."""
    parts = [part.strip() for part in PART.findall(text)]
    if not any(DIRECTIVE.fullmatch(part) for part in parts):
        return None
    return [parse_step(part, ECHO) for part in parts if part]


def parse_step(part: str, otherwise: str) -> Step:
    """A directive; what is none is the object of the other verb."""
    found = DIRECTIVE.fullmatch(part)
    return Step(found[1], found[2] or "") if found else Step(otherwise, part)
