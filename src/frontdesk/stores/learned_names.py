"""The names of WhatsApp people, as they were learned."""

from collections.abc import Sequence

from frontdesk.contracts.store import Work
from frontdesk.model import whatsapp


def learned_names(name: str) -> Work[list[str]]:
    place, _, person = name.partition(":")
    if place.partition("@")[0] != whatsapp.PLATFORM:
        return []
    first = (yield from canonical([person])).get(person, person)
    others = [other for (other,) in (yield "names_of", {"canonical": first})]
    return [f"{place}:{each}" for each in (first, *others)]


def canonical(identifiers: Sequence[str]) -> Work[dict[str, str]]:
    """The canonical WhatsApp identifier of each one that has another."""
    known = {}
    for identifier in identifiers:
        steps = yield "canonical", {"identifier": identifier}
        table = {name: following for following, name in steps}
        person = whatsapp.canonical_whatsapp_identifier(identifier, table)
        if person != identifier:
            known[identifier] = person
    return known


def present_key(key: str) -> Work[str]:
    """The key of a WhatsApp conversation under the names that its people have by now."""
    head, parts = key.split(":")[:3], key.split(":")[3:]
    if head[-1].partition("@")[0] != whatsapp.PLATFORM:
        return key
    known = yield from canonical([part for part in parts if part.isdigit()])
    return ":".join([*head, *(known.get(part, part) for part in parts)])
