"""Canonical JSON: one reading of what comes in, one spelling of what goes out."""

import decimal
import hashlib
import json
import math
import random
import struct
from collections.abc import Iterator, Mapping
from enum import IntEnum, StrEnum
from fractions import Fraction
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frontdesk import errors
from frontdesk.formats import canonical
from tests import counts
from tests.unit.formats import pairs


def double(bits: str) -> float:
    value: float = struct.unpack(">d", bytes.fromhex(bits))[0]
    return value


def brief(value: object) -> str:
    """How a test is called."""
    shown = ascii(value)
    return shown if len(shown) <= 40 else f"{shown[:30]}... of {len(shown)}"


def why_refused(body: bytes) -> str:
    with pytest.raises(errors.InexactJson) as refused:
        canonical.read_strict(body)
    return str(refused.value)


class TestCanonicalForm:
    def test_numbers_strings_and_literals_of_the_standard(self) -> None:
        body = rb"""{
          "numbers": [333333333.33333329, 1E30, 4.50, 2e-3, 0.000000000000000000000000001],
          "string": "\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/",
          "literals": [null, true, false]
        }"""
        wanted = (
            '{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],'
            '"string":"€$\\u000f\\nA\'B\\"\\\\\\\\\\"/"}'
        )
        assert canonical.canonical(canonical.read_strict(body)) == wanted.encode()

    def test_keys_are_in_the_order_of_utf_16(self) -> None:
        names = ["\u20ac", "\r", "\ufb33", "1", "\U0001f600", "\u0080", "\u00f6"]
        ordered = ["\r", "1", "\u0080", "\u00f6", "\u20ac", "\U0001f600", "\ufb33"]
        written = canonical.canonical(dict.fromkeys(names, 0))
        assert [*json.loads(written)] == ordered

    def test_longer_key_comes_after_its_beginning(self) -> None:
        assert canonical.canonical({"aa": 1, "a": 2, "": 3, "B": 4}) == b'{"":3,"B":4,"a":2,"aa":1}'

    @pytest.mark.parametrize(
        ("text", "written"),
        [
            ("\b\t\n\f\r", r'"\b\t\n\f\r"'),
            ("\x00\x1f\x0b", r'"\u0000\u001f\u000b"'),
            ("\x7f\x80\u2028/<>&'", '"\x7f\x80\u2028/<>&\'"'),
            ('"\\', r'"\"\\"'),
            ("é e\u0301 \U0001f600", '"é e\u0301 \U0001f600"'),
        ],
    )
    def test_strings_have_no_escapes_but_those_that_are_needed(self, text: str, written: str) -> None:
        assert canonical.canonical(text) == written.encode()

    def test_nothing_stands_between_the_parts(self) -> None:
        assert canonical.canonical({"a": [1, {}, []], "b": {"c": None}}) == b'{"a":[1,{},[]],"b":{"c":null}}'

    def test_tuples_mappings_and_enums_are_what_they_hold(self) -> None:
        number = IntEnum("number", {"TWO": 2})
        text = StrEnum("text", {"A": "a"})
        value = MappingProxyType({"x": (number.TWO, text.A), text.A: 1.0})
        assert canonical.canonical(value) == b'{"a":1,"x":[2,"a"]}'

    def test_payload_is_the_action_with_its_details(self) -> None:
        written = canonical.payload("delete_data", {"path": "/srv ", "n": 1.0})
        assert written == b'{"action":"delete_data","details":{"n":1,"path":"/srv "}}'

    def test_digest_is_sha_256_in_hex(self) -> None:
        assert canonical.digest(b"abc") == hashlib.sha256(b"abc").hexdigest()
        assert canonical.digest(b"").startswith("e3b0c44298fc1c14")

    @pytest.mark.parametrize(
        ("value", "why"),
        [
            (math.nan, "nan"),
            (-math.inf, "-inf"),
            (2**53, "2**53"),
            (-(2**53), "2**53"),
            (10**4000, "2**53"),
            (2.0**53, "9007199254740992"),
            (1e20, "100000000000000000000"),
            ("a\ud800", "U+D800"),
            ({"\udfff": 1, "é": 2}, "U+DFFF"),
            ({1: 2}, "a key is a int"),
            ({None: 2}, "a key is a NoneType"),
            (b"x", "bytes"),
            ({"a": {1, 2}}, "set"),
            (decimal.Decimal(1), "Decimal"),
            pytest.param(object(), "object", id="an object"),
        ],
        ids=brief,
    )
    def test_value_without_one_spelling_is_refused(self, value: Any, why: str) -> None:
        with pytest.raises(errors.InexactJson) as refused:
            canonical.canonical(value)
        assert why in str(refused.value)
        assert str(refused.value).encode()

    def test_64_levels_are_written_and_65_are_refused(self) -> None:
        deep: Any = 1
        for _ in range(64):
            deep = [deep]
        assert canonical.read_strict(canonical.canonical(deep)) == deep
        with pytest.raises(errors.InexactJson, match="64 levels"):
            canonical.canonical({"a": deep})

    def test_value_that_holds_itself_is_refused(self) -> None:
        endless: list[Any] = []
        endless.append(endless)
        with pytest.raises(errors.InexactJson, match="64 levels"):
            canonical.canonical(endless)

    def test_mapping_with_a_key_twice_is_refused(self) -> None:
        class Twice(Mapping[str, int]):
            def __getitem__(self, key: str) -> int:
                return 1

            def __iter__(self) -> Iterator[str]:
                return iter(("a", "b", "a"))

            def __len__(self) -> int:
                return 3

        with pytest.raises(errors.InexactJson, match='"a" is twice'):
            canonical.canonical(Twice())


class TestNumbers:
    @pytest.mark.parametrize(
        ("bits", "written"),
        [
            ("0000000000000000", "0"),
            ("8000000000000000", "0"),
            ("0000000000000001", "5e-324"),
            ("8000000000000001", "-5e-324"),
            ("7fefffffffffffff", "1.7976931348623157e+308"),
            ("ffefffffffffffff", "-1.7976931348623157e+308"),
            ("4340000000000000", "9007199254740992"),
            ("c340000000000000", "-9007199254740992"),
            ("4430000000000000", "295147905179352830000"),
            ("44b52d02c7e14af5", "9.999999999999997e+22"),
            ("44b52d02c7e14af6", "1e+23"),
            ("44b52d02c7e14af7", "1.0000000000000001e+23"),
            ("444b1ae4d6e2ef4e", "999999999999999700000"),
            ("444b1ae4d6e2ef4f", "999999999999999900000"),
            ("444b1ae4d6e2ef50", "1e+21"),
            ("3eb0c6f7a0b5ed8c", "9.999999999999997e-7"),
            ("3eb0c6f7a0b5ed8d", "0.000001"),
            ("41b3de4355555553", "333333333.3333332"),
            ("41b3de4355555554", "333333333.33333325"),
            ("41b3de4355555555", "333333333.3333333"),
            ("41b3de4355555556", "333333333.3333334"),
            ("41b3de4355555557", "333333333.33333343"),
            ("becbf647612f3696", "-0.0000033333333333333333"),
            ("43143ff3c1cb0959", "1424953923781206.2"),
        ],
    )
    def test_doubles_of_the_standard(self, bits: str, written: str) -> None:
        assert canonical.number(double(bits)) == written

    @pytest.mark.parametrize(
        ("value", "written"),
        [
            (0.1, "0.1"),
            (-0.0, "0"),
            (1.0, "1"),
            (100.0, "100"),
            (123.456, "123.456"),
            (1e-6, "0.000001"),
            (1e-7, "1e-7"),
            (1.5e-7, "1.5e-7"),
            (123456789012345.6, "123456789012345.6"),
            (1e21, "1e+21"),
            (-1.25e25, "-1.25e+25"),
            (7, "7"),
        ],
    )
    def test_numbers_near_the_borders_of_the_forms(self, value: float, written: str) -> None:
        assert canonical.number(value) == written

    @pytest.mark.prove
    def test_form_is_the_shortest_that_gives_the_number_back(self, tell: counts.Tell) -> None:
        checked = 0
        for value in awkward_doubles(random.Random(8785), counts.count(1_000, 200_000)):
            assert canonical.number(value) == expected_number(value), value.hex()
            checked += 1
        tell("numbers in canonical JSON: written as exact arithmetic says", checked)

    @given(st.floats(allow_nan=False, allow_infinity=False))
    def test_number_that_is_written_is_read_as_itself(self, value: float) -> None:
        assert float(canonical.number(value)) == value


def awkward_doubles(chance: random.Random, random_ones: int) -> Iterator[float]:
    """Every power of ten and of two with both neighbours, and random ones of every size."""
    powers = [float(f"1e{exponent}") for exponent in range(-323, 309)]
    powers += [math.ldexp(1, exponent) for exponent in range(-1074, 1024)]
    for power in powers:
        yield from (power, -power, math.nextafter(power, 0), min(math.nextafter(power, math.inf), 1e308))
    for _ in range(random_ones):
        value = double(f"{chance.getrandbits(64):016x}")
        if math.isfinite(value):
            yield value
        yield round(chance.uniform(-1e6, 1e6), chance.randrange(9))
        yield chance.randrange(1, 10**6) * 10.0 ** chance.randrange(-30, 30)


def expected_number(value: float) -> str:
    """The form of ECMAScript, from its definition: n, k and s as in Number::toString, by exact arithmetic."""
    if value == 0:
        return "0"
    sign, exact = "-" if value < 0 else "", Fraction(abs(value))
    s, n = shortest_digits(exact)
    k = len(s)
    if k <= n <= 21:
        return sign + s.ljust(n, "0")
    if 0 < n <= 21:
        return sign + s[:n] + "." + s[n:]
    if -6 < n <= 0:
        return sign + "0." + s.rjust(k - n, "0")
    exponent = f"e+{n - 1}" if n > 0 else f"e-{1 - n}"
    return sign + s[0] + ("." + s[1:] if k > 1 else "") + exponent


def shortest_digits(exact: Fraction) -> tuple[str, int]:
    """The fewest digits that are rounded to the same double, the nearest of them; and where the point is."""
    n = decimal.Decimal(float(exact)).adjusted() + 1
    for k in range(1, 18):
        unit = Fraction(10) ** (n - k)
        below = exact // unit
        found = [digits for digits in (below, below + 1) if float(f"{digits}e{n - k}") == exact]
        if found:
            nearest = min(found, key=lambda digits: (abs(digits * unit - exact), digits % 2))
            shown = str(nearest)
            return shown.rstrip("0"), n + len(shown) - k
    raise AssertionError(f"{exact} has no digits")


class TestStrictReading:
    @pytest.mark.parametrize(
        ("body", "value"),
        [
            (b" \t\r\n[1 , 2]\n", [1, 2]),
            (b'{"a":{"a":1},"b":[{"a":1},{"a":2}]}', {"a": {"a": 1}, "b": [{"a": 1}, {"a": 2}]}),
            (b'"\\ud83d\\ude00\\/\\u0000"', "\U0001f600/\0"),
            (b'"\\\\ud800"', "\\ud800"),
            ('"é\U0001f600\x7f"'.encode(), "é\U0001f600\x7f"),
            (b"9007199254740991", 2**53 - 1),
            (b"-9007199254740991", -(2**53 - 1)),
            (b"1e21", 1e21),
            (b"5e-324", 5e-324),
            (b"1.7976931348623157e308", 1.7976931348623157e308),
            (b"0e999999999", 0),
            (b'"' + b"[" * 1000 + b'"', "[" * 1000),
            (b'"' + b'\\"[' * 1000 + b'"', '"[' * 1000),
            (b"[" + b"[]," * 1000 + b"[]]", [[]] * 1001),
        ],
        ids=brief,
    )
    def test_json_is_read(self, body: bytes, value: Any) -> None:
        assert canonical.read_strict(body) == value

    @pytest.mark.parametrize("body", [b"5", b"5.0", b"5e0", b"50e-1", b"0.5E1", b"5.000"])
    def test_whole_number_is_an_int_in_every_spelling(self, body: bytes) -> None:
        value = canonical.read_strict(body)
        assert (type(value), value) == (int, 5)

    @pytest.mark.parametrize("body", [b"-0", b"-0.0", b"0", b"0e5", b"-0E-7"])
    def test_zero_has_no_sign(self, body: bytes) -> None:
        assert canonical.canonical(canonical.read_strict(body)) == b"0"

    @pytest.mark.parametrize(
        ("body", "whys"),
        [
            (b'{"a":1,"a":1}', ['"a" is twice']),
            (b'{"a":1,"\\u0061":2}', ['"a" is twice']),
            (b'[{"x":{"b":1,"c":2,"b":3}}]', ['"b" is twice']),
            (b"NaN", ["NaN", "column 1"]),
            (b"[1,\n Infinity]", ["Infinity", "line 2, column 2"]),
            (b'{"NaN":-Infinity}', ["-Infinity", "column 8"]),
            (b'["\\ud800"]', ["\\ud800", "column 3"]),
            (b'"\\uDC00\\uD800"', ["\\uDC00", "column 2"]),
            (b'"\\ud83d\\u0041"', ["\\ud83d"]),
            (b'"\\\\\\ud83d x\\ude00"', ["\\ud83d", "column 4"]),
            (b'{"\\udead":1}', ["\\udead"]),
            (b'"\xed\xa0\x80"', ["UTF-8", "byte 2"]),
            (b'"\xc0\x80"', ["UTF-8"]),
            (b"\xff", ["UTF-8", "byte 1"]),
            ("[1]".encode("utf-16"), ["UTF-8"]),
            ("[1]".encode("utf-16-be"), ["not JSON"]),
            (b"\xef\xbb\xbf[1]", ["byte order mark"]),
            (b"9007199254740992", ["9007199254740992", "2**53-1", "column 1"]),
            (b'["9007199254740993", -9007199254740993]', ["-9007199254740993", "column 22"]),
            (b"9007199254740992.0", ["2**53-1"]),
            (b"1e16", ["2**53-1"]),
            (b"-123456789e10", ["2**53-1"]),
            (b"9" * 100_000, ["999...", "2**53-1"]),
            (b"-" + b"9" * 100_000, ["2**53-1"]),
            (b"0." + b"1" * 100_000, ["more than 400 characters"]),
            (b"1e400", ["1e400 is too large"]),
            (b"[-1e999]", ["-1e999 is too large", "column 2"]),
            (b"1e-400", ["too small"]),
            (b"[" * 65 + b"]" * 65, ["64 levels", "column 65"]),
            (b'{"a":' * 65 + b"1" + b"}" * 65, ["64 levels", "column 321"]),
            (b"[" * 1_000_000, ["64 levels"]),
            (b'[["["' * 1_000, ["64 levels"]),
            (b"{} x", ["not JSON", "column 4"]),
            (b"1 2", ["not JSON"]),
            (b"", ["not JSON"]),
            (b"  ", ["not JSON"]),
            (b"[1,]", ["not JSON"]),
            (b'{"a":1,}', ["not JSON"]),
            (b"{'a':1}", ["not JSON"]),
            (b"{a:1}", ["not JSON"]),
            (b"01", ["not JSON"]),
            (b"+1", ["not JSON"]),
            (b".5", ["not JSON"]),
            (b"1.", ["not JSON"]),
            (b"0x10", ["not JSON"]),
            ("١".encode(), ["not JSON"]),
            ("1١".encode(), ["not JSON"]),
            (b"[1]\x00", ["not JSON"]),
            ("[1]\u00a0".encode(), ["not JSON"]),
            (b'"a\nb"', ["not JSON", "control character"]),
            (b'"\\x41"', ["not JSON"]),
            (b'"\\u12"', ["not JSON"]),
            (b'"\\u+123"', ["not JSON"]),
            (b'"abc', ["not JSON"]),
            (b'"' + b'\\"' * 100_000, ["not JSON"]),
            (b"/* */ 1", ["not JSON"]),
            (b"TRUE", ["not JSON"]),
            (b"undefined", ["not JSON"]),
        ],
        ids=brief,
    )
    def test_what_could_be_read_in_two_ways_is_refused_and_named(self, body: bytes, whys: list[str]) -> None:
        why = why_refused(body)
        assert all(part in why for part in whys), why
        assert len(why) < 300

    def test_64_levels_are_read(self) -> None:
        body = b"[" * 64 + b"]" * 64
        assert canonical.canonical(canonical.read_strict(body)) == body

    def test_refused_key_is_repeated_cleaned_and_cut(self) -> None:
        key = json.dumps("\u202e\n" + "x" * 5000)
        why = why_refused(f"{{{key}:1,{key}:2}}".encode())
        assert "\u202e" not in why
        assert "\n" not in why
        assert len(why) < 400


class TestExactness:
    @given(pairs.values)
    def test_canonical_bytes_are_read_and_written_as_themselves(self, value: Any) -> None:
        written = canonical.canonical(value)
        read = canonical.read_strict(written)
        assert canonical.canonical(read) == written
        assert pairs.meaning(read) == pairs.meaning(value)

    @given(pairs.values)
    def test_every_spelling_of_a_value_has_the_same_bytes(self, value: Any) -> None:
        spellings = (
            json.dumps(value),
            json.dumps(value, indent=3, ensure_ascii=False),
            json.dumps(value, sort_keys=True, separators=(" ,\t", "\r\n: ")),
        )
        for spelling in spellings:
            assert canonical.canonical(canonical.read_strict(spelling.encode())) == canonical.canonical(value)

    @given(pairs.values, pairs.values)
    def test_bytes_of_any_two_values_are_equal_only_when_they_are(self, one: Any, other: Any) -> None:
        same = pairs.meaning(one) == pairs.meaning(other)
        assert (canonical.canonical(one) == canonical.canonical(other)) is same

    @given(pairs.values)
    def test_it_is_json_for_everybody(self, value: Any) -> None:
        assert pairs.meaning(json.loads(canonical.canonical(value))) == pairs.meaning(value)

    @pytest.mark.prove
    def test_actions_that_differ_have_different_digests(self, tell: counts.Tell) -> None:
        chance = random.Random(412)
        wanted = counts.count(2_000, 50_000)
        differing = same = 0
        for _ in range(wanted):
            one, other = pairs.some_pair(chance)
            equal = pairs.meaning(one) == pairs.meaning(other)
            digests = {canonical.digest(canonical.payload("act", details)) for details in (one, other)}
            assert (len(digests) == 1) is equal, (one, other)
            same += equal
            differing += not equal
        assert differing >= wanted // 2
        assert same >= wanted // 50
        tell("pairs of actions that differ: each has its digest", differing)
        tell("pairs of actions in two spellings: they have one digest", same)


def is_read_or_refused(body: bytes) -> bool:
    """Whether it is read as everybody would read it, and can be written, or is refused by name."""
    try:
        value = canonical.read_strict(body)
    except errors.InexactJson as error:
        return bool(str(error).encode())
    assert pairs.meaning(json.loads(body)) == pairs.meaning(value)
    return pairs.meaning(canonical.read_strict(canonical.canonical(value))) == pairs.meaning(value)


PIECES = (
    *(bytes([sign]) for sign in b'"\\[]{}:,-+.0e\n\x00\xff\xed\xef'),
    *(b"\\u", b"\\ud8", b"\\ud83d", b"\\ude00", b"\xed\xa0\x80", b"\xef\xbb\xbf", b"\xf0\x9f\x98\x80"),
    *(b"null", b"true", b"NaN", b"-Infinity", b"1e99", b"1e999", b"1e16", b"9" * 17, b"[" * 70, b'"a":1,'),
)


def damaged(body: bytes, chance: random.Random) -> bytes:
    changing = bytearray(body)
    for _ in range(chance.randint(1, 6)):
        start = chance.randrange(len(changing) + 1)
        end = min(start + chance.choice((0, 0, 1, 1, 2, 9)), len(changing))
        changing[start:end] = chance.choice(
            (b"", chance.choice(PIECES), chance.randbytes(2), changing[start:end] * 2)
        )
    return bytes(changing)


likely_bodies = st.text(alphabet='[]{}":,\\u0123d8Ee.-+ NaInfty\ud800').map(
    lambda text: text.encode("utf-8", "surrogatepass")
)


class TestFuzz:
    @pytest.mark.prove
    @given(st.binary() | likely_bodies)
    def test_any_bytes_are_read_or_refused(self, body: bytes) -> None:
        assert is_read_or_refused(body)

    @pytest.mark.prove
    def test_any_damage_to_a_body_is_read_or_refused(self, tell: counts.Tell) -> None:
        chance = random.Random(20260105)
        wanted = counts.count(5_000, 1_000_000)
        goods = [pairs.some_pair(chance)[0] for _ in range(1_000)]
        for nth in range(wanted):
            good = json.dumps(goods[nth % len(goods)], ensure_ascii=bool(nth % 3)).encode()
            assert is_read_or_refused(damaged(good, chance))
        tell("damaged bodies: read exactly, or refused by name", wanted)
