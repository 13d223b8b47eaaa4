"""How many tokens a text is likely to have, where nobody has counted them."""

import re

LETTERS_PER_TOKEN = 3

_LETTERS = re.compile(r"[A-Za-z\s]+")


def likely_tokens(text: str) -> int:
    """About as many tokens as the text has: words are cheap, digits, signs and other scripts are not."""
    letters = sum(map(len, _LETTERS.findall(text)))
    return -(-letters // LETTERS_PER_TOKEN) + len(_LETTERS.sub("", text).encode("utf-8", "replace"))
