"""Characters by their names, where an action is not written as it reads."""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable
from difflib import SequenceMatcher

from frontdesk.formats import actions
from frontdesk.model import lookalikes, spellings
from frontdesk.model.confirmations import HIGH_RISK_ACTIONS

MOST_NAMED = 3
MOST_WRITTEN = 120

_PICTURE = "\u2600-\u27bf\u2b00-\u2bff\U0001f000-\U0001faff"
# A backslash that is one itself begins no escape. What joins the parts of an emoji, or says that it is one,
# is part of it: it is shown, and nothing is said of it.
_ESCAPE = re.compile(
    rf"\\\\|(?<=[{_PICTURE}])(?:\\u\{{fe0f\}}(?:\\u\{{200d\}}(?=[{_PICTURE}]))?|\\u\{{200d\}}(?=[{_PICTURE}]))"
    r"|\\u\{(?P<code>[0-9a-f]+)\}"
)


def escapes_in(lines: Iterable[str]) -> Counter[str]:
    """The characters that lines show as escapes, and how many of each there are."""
    codes = (found["code"] for line in lines for found in _ESCAPE.finditer(line))
    return Counter(chr(int(code, 16)) for code in codes if code)


def named(signs: Counter[str]) -> str:
    """The most frequent of them by their names, with what they pass for."""
    told = ", ".join(name_of(sign) for sign, _ in signs.most_common(MOST_NAMED))
    return f"{told} and {len(signs) - MOST_NAMED} more" if len(signs) > MOST_NAMED else told


def name_of(sign: str) -> str:
    """A character as an escape, with its name in Unicode and what it looks like."""
    name = unicodedata.name(sign, "no name").capitalize()
    passes_for = lookalikes.passes_for(sign)
    like = f", like {actions.spelled(passes_for)}" if passes_for else ""
    return f"\\u{{{ord(sign):x}}} ({name}{like})"


def respelled(written: str) -> str:
    """How one of the ten is written, with what, and what it is read as; empty for its own name."""
    if written in HIGH_RISK_ACTIONS:
        return ""
    read = next(name for name in sorted(HIGH_RISK_ACTIONS) if spellings.reads_as(written, name))
    changes = SequenceMatcher(None, written, read, autojunk=False).get_opcodes()
    pairs = [(written[a:b], read[c:d]) for kind, a, b, c, d in changes if kind != "equal"]
    told = [_change(*pair) for pair in pairs if pair[0] and pair[0].casefold() != pair[1].casefold()]
    more = f" and {len(told) - MOST_NAMED} more" if len(told) > MOST_NAMED else ""
    spelled = actions.spelled(written)
    shown = f" Written {spelled}" if len(spelled) <= MOST_WRITTEN else " Written otherwise"
    signs = f", with {', '.join(told[:MOST_NAMED])}{more}" if told else ""
    return f"{shown}{signs}; read as {read}."


def _change(written: str, read: str) -> str:
    signs = " ".join(
        actions.spelled(sign) if sign.isascii() else name_of(sign) for sign in written[:MOST_NAMED]
    )
    return f'{signs} for "{read}"' if read else signs
