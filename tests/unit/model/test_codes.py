"""Codes: easy to read, hard to guess, kept as seals alone."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frontdesk.model import codes

NOON = datetime(2026, 1, 5, 12, 0, tzinfo=UTC)


def test_code_is_eight_characters_that_nobody_misreads() -> None:
    made = {codes.new_code() for _ in range(500)}
    assert len(made) == 500
    assert all(len(code) == 8 for code in made)
    assert not set("".join(made)) & set("IO01il")
    assert len(codes.ALPHABET) == len(set(codes.ALPHABET)) == 32


def test_code_counts_however_it_is_typed() -> None:
    seal = codes.seal("ABCD2345")
    for typed in ("ABCD2345", "abcd2345", " ABCD-2345\n", "ab cd 23 45", codes.shown("ABCD2345")):
        assert seal.fits(typed)


@pytest.mark.parametrize(
    "typed",
    [
        "",
        "-",
        "ABCD234",
        "ABCD23456",
        "ABCD2346",
        "АBCD2345",  # the first letter is Cyrillic
        "ＡBCD2345",
        "ABCD234５",
        "ABCD\u200b2345",
        "ABCD_2345",
        "*",
    ],
)
def test_what_is_not_the_code_does_not_fit(typed: str) -> None:
    assert not codes.seal("ABCD2345").fits(typed)


def test_letter_whose_capital_is_ours_is_still_another_letter() -> None:
    assert "ſ".upper() == "S"
    assert not codes.seal("SSSSSSSS").fits("ſſſſſſſſ")


def test_nothing_fits_the_seal_of_nothing() -> None:
    assert not codes.seal("").fits("")


@given(st.text(max_size=20))
def test_other_text_does_not_fit(text: str) -> None:
    assert codes.seal("ABCD2345").fits(text) is (codes.clean(text) == "ABCD2345")


def test_seal_does_not_tell_the_code() -> None:
    one, other = codes.seal("ABCD2345"), codes.seal("ABCD2345")
    assert one.salt != other.salt
    assert one.digest != other.digest
    assert b"ABCD2345" not in one.salt + one.digest


def test_fifth_failure_locks_for_an_hour() -> None:
    lockout = codes.Lockout(since=NOON)
    for number in range(1, codes.MOST_FAILURES + 1):
        assert not lockout.holds(NOON)
        lockout = lockout.failed(NOON)
        assert lockout.failures == number
    assert lockout.holds(NOON + timedelta(minutes=59))
    assert not lockout.holds(NOON + timedelta(hours=1))
    assert lockout.failed(NOON + timedelta(hours=1)).failures == 1


def test_failures_of_long_ago_do_not_count() -> None:
    lockout = codes.Lockout(since=NOON)
    for _ in range(codes.MOST_FAILURES - 1):
        lockout = lockout.failed(NOON)
    assert lockout.failed(NOON + timedelta(hours=1)).failures == 1
