"""How each database's full-text index is filled and asked. Nothing that people write becomes syntax."""

from collections.abc import Collection, Sequence
from functools import lru_cache
from hashlib import blake2b
from typing import Any, Protocol

import msgspec

from frontdesk.contracts.store import EACH, Statement
from frontdesk.formats import words
from frontdesk.model.searches import Term

OWNER_MARK = "\ue000"
"""Begins the word that stands for an owner; no text has a word with it, since it is no letter."""

OWNER_BYTES = 8
OWNERS_KEPT = 4_096


@lru_cache(maxsize=OWNERS_KEPT)
def owner_word(owner: str) -> str:
    """The word that an owner's messages are indexed with. Two owners may share one: check the owner, too."""
    return OWNER_MARK + blake2b(owner.encode(), digest_size=OWNER_BYTES).hexdigest()


Document = tuple[Any, ...]
"""A message's number and its columns in the index."""


class Dialect(Protocol):
    rows_at_once: int
    bytes_at_once: int
    """What is indexed in one transaction at most: others wait for it, or for making it ready."""

    def document(self, owner: str, text: str) -> tuple[str, ...]:
        """A message's columns in the index."""
        ...

    def insertion(self, documents: Sequence[Document]) -> Statement:
        """Puts them into the index, or in the place of what it had of them."""
        ...

    def match(self, terms: Sequence[Term], owners: Collection[str] = ()) -> str:
        """An expression for messages with all the terms; with owners, for messages of one of them."""
        ...


class Fts5:
    """SQLite's FTS5 with its tokenizer ``ascii``, which parts words as our own function does."""

    rows_at_once = 512
    bytes_at_once = 512 * 1024

    def document(self, owner: str, text: str) -> tuple[str, ...]:
        return words.spaced(text), owner_word(owner)

    def insertion(self, documents: Sequence[Document]) -> Statement:
        return "insert_words", {EACH: documents}

    def match(self, terms: Sequence[Term], owners: Collection[str] = ()) -> str:
        parts = [self._phrase(term) for term in terms]
        if owners:
            parts.insert(0, f"({' OR '.join(self._quote(owner_word(owner)) for owner in sorted(owners))})")
        return " AND ".join(parts)

    def _phrase(self, term: Term) -> str:
        return self._quote(" ".join(term.words)) + (" *" if term.prefix else "")

    def _quote(self, text: str) -> str:
        escaped = text.replace("\0", " ").replace('"', '""')
        return f'"{escaped}"'


class TsVector:
    """PostgreSQL's tsvector, written out, so that the server's parsers and dictionaries play no part. It is
    written on the event loop, and takes longer."""

    rows_at_once = 128
    bytes_at_once = 128 * 1024

    LONGEST_WORD_CHARACTERS = 500  # 2,046 bytes
    LAST_POSITION = 16_383
    MOST_POSITIONS = 255
    MOST_BYTES = 900_000  # 1 MiB with what the server adds
    WORD_OVERHEAD_BYTES = 8

    def document(self, owner: str, text: str) -> tuple[str, ...]:
        lexemes = [self._quote(owner_word(owner))]
        room = self.MOST_BYTES
        for word, positions in self._places(text).items():
            kept = positions[: self.MOST_POSITIONS]
            room -= len(word.encode()) + 2 * len(kept) + self.WORD_OVERHEAD_BYTES
            if room < 0:
                break
            lexemes.append(f"{self._quote(word)}:{','.join(kept)}" if kept else self._quote(word))
        return (" ".join(lexemes),)

    def insertion(self, documents: Sequence[Document]) -> Statement:
        return "insert_words", {"rows": msgspec.json.encode(documents).decode()}

    def match(self, terms: Sequence[Term], owners: Collection[str] = ()) -> str:
        parts = [f"({self._phrase(term)})" for term in terms]
        if owners:
            parts.append(f"({' | '.join(self._quote(owner_word(owner)) for owner in sorted(owners))})")
        return " & ".join(parts)

    def _places(self, text: str) -> dict[str, list[str]]:
        """Where each word stands. Words too far back are found without their place, so not in phrases."""
        found = [word[: self.LONGEST_WORD_CHARACTERS] for word in words.split(text)]
        places: dict[str, list[str]] = {}
        for position, word in enumerate(found[: self.LAST_POSITION], 1):
            places.setdefault(word, []).append(str(position))
        for word in found[self.LAST_POSITION :]:
            places.setdefault(word, [])
        return places

    def _phrase(self, term: Term) -> str:
        quoted = [self._quote(word[: self.LONGEST_WORD_CHARACTERS]) for word in term.words]
        return " <-> ".join(quoted) + (":*" if term.prefix else "")

    def _quote(self, word: str) -> str:
        escaped = word.replace("\0", " ").replace("\\", "\\\\").replace("'", "''")
        return f"'{escaped}'"


DIALECTS: dict[str, Dialect] = {"fts5": Fts5(), "tsvector": TsVector()}
"""By the name that the queries ``index_state`` and ``lock_index`` give."""
