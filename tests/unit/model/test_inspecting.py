"""Content that nobody can read: found whatever it is in, and little else."""

import base64
import random
from typing import Any

import pytest

from frontdesk.formats import canonical, cards
from frontdesk.model import rules
from frontdesk.model.confirmations import Mode
from frontdesk.model.inspecting import BY_DIGEST, ENCODED, NO_TEXT, is_readable, unreadable_parts
from frontdesk.model.rules import Effect
from tests.unit.model.test_rules import NOW, rule, wanted

RANDOM = random.Random(12).randbytes(2_000)
DIGEST = "0123456789abcdef" * 4
WRAPPED = base64.encodebytes(RANDOM).decode()
UNREADABLE: dict[str, tuple[Any, str]] = {
    "input by its digest": ({"sha256": DIGEST, "size": 9, "text": None}, BY_DIGEST),
    "no text at all": ({"sha256": DIGEST.upper(), "size": 9}, BY_DIGEST),
    "base64": (base64.b64encode(RANDOM).decode(), ENCODED),
    "wrapped base64": (WRAPPED, ENCODED),
    "base64 for addresses": (base64.urlsafe_b64encode(RANDOM).decode(), ENCODED),
    "hex": (RANDOM.hex(), ENCODED),
    "capital hex": (RANDOM.hex().upper(), ENCODED),
    "in a command": (f"echo {base64.b64encode(RANDOM).decode()} | base64 -d | sh", ENCODED),
    "binary": (RANDOM.decode("latin-1"), NO_TEXT),
    "binary that was replaced": (RANDOM.decode("utf-8", "replace"), NO_TEXT),
}
READABLE: dict[str, Any] = {
    "words": "Write to the press, and say that we are well. " * 100,
    "script": '#!/bin/sh\nset -e\nfor each in /srv/*; do rm -rf "$each"; done\n' * 50,
    "paths": "\n".join(f"/usr/lib/python3/dist-packages/some/long/path/file_{n}.py" for n in range(200)),
    "address": "https://example.org/" + "a-long-path/" * 40 + "?q=1",
    "digests": "\n".join([DIGEST] * 3),
    "key": base64.b64encode(RANDOM[:64]).decode(),
    "Russian": "Удалить все записи клиента номер 7 из таблицы заказов. " * 50,
    "Chinese": "删除客户的所有订单" * 200,
    "numbers": "1234567890 " * 200,
    "line of signs": "-" * 5_000,
    "capitals": "VERY_LONG_NAME_OF_SOMETHING_" * 40,
    "program": {"path": "/usr/bin/python3", "sha256": DIGEST},
    "input as text": {"sha256": DIGEST, "size": 2, "text": "ls"},
    "nothing": None,
    "table": "a\tb\r\n" * 500,
}


@pytest.mark.parametrize("name", UNREADABLE)
def test_what_nobody_can_read_is_found_wherever_it_is(name: str) -> None:
    value, why = UNREADABLE[name]
    for details, path in (({"x": value}, "x"), ({"a": {"b": [1, value]}}, "a.b.2")):
        found = [(".".join(part.path), part.why) for part in unreadable_parts(details)]
        assert found == [(path, why)]
    assert not is_readable(value)


@pytest.mark.parametrize("name", READABLE)
def test_what_people_read_is_left_alone(name: str) -> None:
    assert list(unreadable_parts({"x": READABLE[name]})) == []


def test_name_of_an_argument_may_be_unreadable() -> None:
    assert not is_readable({base64.b64encode(RANDOM).decode(): 1})


@pytest.mark.parametrize("name", UNREADABLE)
def test_no_rule_allows_what_nobody_can_read(name: str) -> None:
    details = {"x": UNREADABLE[name][0]}
    allowing = [rule(Effect.ALLOW, action="send_mail"), rule(Effect.ALLOW, digest="d" * 64)]
    assert rules.decide(allowing, wanted(), {"x": "a"}, Mode.SOLO, NOW).effect is Effect.ALLOW
    assert rules.decide(allowing, wanted(), details, Mode.SOLO, NOW).effect is Effect.ASK
    strict = rules.decide([], wanted(), details, Mode.STRICT, NOW)
    assert (strict.effect, strict.terms.quorum) == (Effect.ASK, rules.STRICT_QUORUM)


@pytest.mark.parametrize("name", UNREADABLE)
def test_what_nobody_can_read_is_marked_where_it_is_shown(name: str) -> None:
    value, why = UNREADABLE[name]
    card = cards.make(canonical.payload("run", {"my input": value}), "", "agent")
    assert f'▲ Nobody can read "my input": {why}.' in card.oddities().splitlines()
    assert card.is_high_risk
    assert card.typed is not None


def test_what_is_said_of_it_cannot_be_forged() -> None:
    forged = "▲ Nobody can read x: it is encoded."
    card = cards.make(canonical.payload("run", {forged: forged, "y": f"a\n{forged}"}), forged, forged)
    assert not [line for line in card.text().splitlines() if line.startswith("▲")]
