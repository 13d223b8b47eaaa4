"""The words of pages, by language: a file for each, nothing of them in code."""

import tomllib
from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Any

import msgspec

ENGLISH = "en"


@cache
def languages() -> tuple[str, ...]:
    """Those that there are words in."""
    folder = resources.files(__package__).joinpath("languages")
    return tuple(sorted(each.name.removesuffix(".toml") for each in folder.iterdir()))


@cache
def words(language: str) -> Mapping[str, Any]:
    """All of a language, by page."""
    file = resources.files(__package__).joinpath("languages", f"{language}.toml")
    return tomllib.loads(file.read_text("utf-8"))


def say(key: str, language: str = ENGLISH, **values: Any) -> str:
    """A text by its key, ``page.name``; of one that has forms, that for ``count``. KeyError where there is
    none even in English."""
    found = _find(words(language), key)
    if found is None and language == ENGLISH:
        raise KeyError(key)
    if found is None:
        return say(key, **values)
    text: str = found if isinstance(found, str) else found["one" if values.get("count") == 1 else "other"]
    return text.format(**values) if values else text


@cache
def script_words(language: str = ENGLISH) -> str:
    """What scripts say, as JSON."""
    return msgspec.json.encode(words(ENGLISH)["script"] | words(language).get("script", {})).decode()


def _find(words: Mapping[str, Any], key: str) -> Any:
    table, _, name = key.rpartition(".")
    return words.get(table, {}).get(name)
