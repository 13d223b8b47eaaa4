"""Who gives way on a port, with connections that only say what they are."""

import logging

import pytest

from frontdesk.web import bounds
from frontdesk.web.bounds import Listeners, PortConnections, PortLimits

LATER = 1.0
"""Seconds after which nobody is young any more."""


class FakeConnection:
    def __init__(self, address: str | None = "192.0.2.1", *, waits: bool = True) -> None:
        self.address = address
        self.waits = waits
        self.late: str | None = None
        self.is_cut = False

    def overdue(self, now: float) -> str | None:
        return self.late if now else None

    def stop_reading(self) -> None:
        raise AssertionError("no body is sent here")

    def go_on_reading(self) -> None:
        raise AssertionError("no body is sent here")

    def cut(self) -> None:
        self.is_cut = True


class FakePort:
    """A port, with a time that is set."""

    def __init__(self, most: int = 8, *proxies: str) -> None:
        self.now = 1.0
        limits = PortLimits(connections=most, proxies=proxies)
        self.connections = PortConnections("test", limits, lambda: self.now)

    def enter(self, *connections: FakeConnection) -> None:
        for each in connections:
            self.connections.enter(each)

    def sweep_later(self) -> None:
        self.now += LATER
        self.connections.sweep()


def cut(connections: list[FakeConnection]) -> list[bool]:
    return [each.is_cut for each in connections]


def crowd(count: int, address: str | None = "192.0.2.1", *, waits: bool = True) -> list[FakeConnection]:
    return [FakeConnection(address, waits=waits) for _ in range(count)]


def test_oldest_of_an_address_gives_way() -> None:
    port, many = FakePort(), crowd(4)
    port.enter(*many)
    port.sweep_later()
    assert cut(many) == [True, True, False, False]


def test_nobody_gives_way_to_others_of_the_same_moment() -> None:
    port, many = FakePort(), crowd(4)
    port.enter(*many)
    assert not any(cut(many))


def test_who_waits_for_us_gives_way_last() -> None:
    port, busy, waiting = FakePort(), crowd(2, waits=False), crowd(2)
    port.enter(*busy, *waiting)
    port.sweep_later()
    assert cut(busy) == [True, False]
    assert cut(waiting) == [True, False], "the newest stays, whatever the others do"


def test_other_addresses_keep_their_places() -> None:
    port, one, many = FakePort(), FakeConnection("192.0.2.2"), crowd(4)
    port.enter(one, *many)
    port.sweep_later()
    assert not one.is_cut


def test_who_has_shown_a_credential_counts_for_it() -> None:
    port, many = FakePort(), crowd(4)
    port.enter(*many)
    for each in many:
        port.connections.prove(each, "ann")
    port.sweep_later()
    assert not any(cut(many))


def test_credential_has_half_of_the_places() -> None:
    port, many = FakePort(8), crowd(6)
    port.enter(*many)
    for each in many:
        port.connections.prove(each, "ann")
    port.sweep_later()
    assert cut(many) == [True, True, False, False, False, False]


def test_full_port_takes_a_newcomer_for_the_oldest_without_a_credential() -> None:
    port, known, strangers = FakePort(4), FakeConnection(), [FakeConnection(f"192.0.2.{n}") for n in range(4)]
    port.enter(known)
    port.connections.prove(known, "ann")
    port.enter(*strangers)
    assert not known.is_cut
    assert cut(strangers) == [True, False, False, False]
    assert len(port.connections) == 4


def test_full_port_of_known_senders_takes_a_newcomer_for_one_of_whom_it_has_most() -> None:
    port, known = FakePort(4), crowd(4)
    for each, who in zip(known, ["ann", "bob", "ann", "eve"], strict=True):
        port.enter(each)
        port.connections.prove(each, who)
    newcomer = FakeConnection()
    port.enter(newcomer)
    assert cut(known) == [True, False, False, False]
    assert not newcomer.is_cut


def test_full_port_where_nobody_has_two_places_takes_nobody() -> None:
    port, known, newcomer = FakePort(2), crowd(2), FakeConnection()
    for each, who in zip(known, ["ann", "bob"], strict=True):
        port.enter(each)
        port.connections.prove(each, who)
    port.enter(newcomer)
    assert newcomer.is_cut
    assert len(port.connections) == 2


@pytest.mark.parametrize(
    ("addresses", "is_one"),
    [
        (["2001:db8::1", "2001:db8::2", "2001:db8::ffff:1"], True),
        (["::ffff:192.0.2.1", "192.0.2.1", "192.0.2.1"], True),
        (["fe80::1%eth0", "fe80::2", "fe80::3"], True),
        (["2001:db8:0:1::1", "2001:db8:0:2::1", "2001:db8:0:3::1"], False),
        (["192.0.2.1", "192.0.2.2", "192.0.2.3"], False),
    ],
)
def test_addresses_that_one_sender_has_count_as_one(addresses: list[str], is_one: bool) -> None:
    port, many = FakePort(), [FakeConnection(each) for each in addresses]
    port.enter(*many)
    port.sweep_later()
    assert cut(many) == [is_one, False, False]


@pytest.mark.parametrize("proxy", ["192.0.2.1", "192.0.2.0/24", "192.0.2.9/24"])
def test_proxy_is_bound_by_the_port_alone(proxy: str) -> None:
    port, many = FakePort(8, proxy), crowd(9)
    port.enter(*many)
    port.sweep_later()
    assert cut(many) == [True] + [False] * 8


def test_owners_socket_is_bound_as_a_whole() -> None:
    port, many = FakePort(8), crowd(9, address=None)
    port.enter(*many)
    port.sweep_later()
    assert cut(many) == [True] + [False] * 8


def test_who_is_late_is_cut_off() -> None:
    port, late, early = FakePort(), FakeConnection(), FakeConnection()
    late.late = "too_slow"
    port.enter(late, early)
    port.sweep_later()
    assert (late.is_cut, early.is_cut) == (True, False)
    assert port.connections.refused == {"too_slow": 1}


def test_log_has_the_first_and_then_once_a_minute_how_many(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    port = FakePort(4)
    port.enter(*crowd(30))
    assert len(caplog.records) == 1
    for _ in range(int(bounds.TELLING_SECONDS / LATER)):
        port.sweep_later()
    first, second = (record.getMessage() for record in caplog.records)
    assert "too_many=1" in first
    assert "too_many=25 too_many_of_one=3" in second
    assert sum(port.connections.refused.values()) == 29


def test_browsers_that_connect_in_advance_are_counted_and_not_told(caplog: pytest.LogCaptureFixture) -> None:
    port, silent = FakePort(), FakeConnection()
    silent.late = bounds.SILENT
    port.enter(silent)
    port.sweep_later()
    assert silent.is_cut
    assert not caplog.records
    assert port.connections.refused == {bounds.SILENT: 1}


def test_port_leaves_most_files_to_others() -> None:
    limits = PortLimits(connections=10**9)
    assert PortConnections("test", limits, float).most == bounds.most_files() // 4


def test_who_is_answered_without_an_end_is_looked_at_now_and_then() -> None:
    port, (staying, other, left) = FakePort(), crowd(3, None)
    port.enter(staying, other, left)
    for each in (staying, left):
        port.connections.stay(each)
    staying.late = "unread"
    port.connections.leave(left)
    left.late = "unread"
    for _ in range(bounds.SWEEPS_OF_ALL):
        port.sweep_later()
    assert cut([staying, other, left]) == [True, False, False]
    assert len(port.connections) == 1


def test_somebody_waits_while_a_request_has_only_just_come() -> None:
    listeners, now = Listeners(opened=[]), [0.0]
    with listeners.open("test", lambda: now[0]) as port:
        assert not listeners.somebody_waits()
        port.asked_at = now[0]
        assert listeners.somebody_waits()
        now[0] += bounds.AWAITED_SECONDS
        assert not listeners.somebody_waits()
