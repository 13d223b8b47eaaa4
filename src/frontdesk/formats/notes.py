"""Sentences that the notes of several platforms share."""

from collections.abc import Mapping

from frontdesk.formats.quoting import quote_any


def no_apis(name: str) -> str:
    return (
        f"You have no {name} APIs: you cannot search or read history, list channels or members, pin messages,"
        " or manage anything. Do not promise any of it."
    )


def known(facts: Mapping[str, str | None]) -> str:
    """Of a chat's facts those that are known, quoted."""
    quoted = ((label, quote_any(value)) for label, value in facts.items())
    return ", ".join(f"{label} {value}" for label, value in quoted if value) or "not identified"
