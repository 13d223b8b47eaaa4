"""JSON with one reading and one spelling: strict on the way in, the bytes of RFC 8785 on the way out.

Whatever :func:`canonical` writes, :func:`read_strict` reads, as the same value.
"""

import hashlib
import json
import math
import re
from collections.abc import Mapping
from itertools import accumulate, islice, pairwise
from json.encoder import encode_basestring
from typing import Any, NoReturn

from frontdesk import errors
from frontdesk.formats import quoting

MAX_WHOLE = 2**53 - 1
"""The largest whole number that every reader of JSON reads as itself."""
MAX_DEPTH = 64
MAX_NUMBER_CHARACTERS = 400
SHOWN_CHARACTERS = 40
"""So much of a number is repeated in the error about it."""

BYTE_ORDER_MARK = b"\xef\xbb\xbf"
DIGITS_WITHOUT_EXPONENT = 21
ZEROS_WITHOUT_EXPONENT = 6
ALL_WHOLE_FROM = 10.0**DIGITS_WITHOUT_EXPONENT
"""From here on a number is written with an exponent, and cannot be mistaken for an exact whole number."""

_STRING = r'"(?:[^"\\]++|\\.)*+"?'
_BRACKETS = re.compile(rf"{_STRING}|([\[\]{{}}])", re.DOTALL)
_BETWEEN_BRACKETS = re.compile(rf"{_STRING}|[^\"\[\]{{}}]++", re.DOTALL)
_STEPS = {"[": 1, "{": 1, "]": -1, "}": -1}
_NUMBERS = re.compile(rf"{_STRING}|(-?(?:[0-9][0-9.eE+-]*+|NaN|Infinity))", re.DOTALL)
_ESCAPES = re.compile(
    r"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(u[dD][89a-fA-F][0-9a-fA-F]{2})|.)",
    re.DOTALL,
)


def read_strict(body: bytes) -> Any:
    """The value in a body. Total: whatever is not JSON, or could be read in more than one way, raises
    InexactJson, which says what is wrong and where.

    Refused are duplicate keys, NaN and Infinity, halves of characters, deep nesting, numbers that no double
    holds, and whole numbers beyond ±(2**53-1), unless even their canonical form has an exponent. A whole
    number is an int however it is written: ``5.0`` and ``5`` are the same.
    """
    text = _decoded(body)
    _check_depth(text)
    _check_escapes(text)
    return _StrictReader(text).value()


def canonical(value: object) -> bytes:
    """The one spelling of a value, as RFC 8785 has it; InexactJson for what has none."""
    try:
        return _written(value, 0).encode()
    except UnicodeEncodeError as error:
        raise _inexact(f"half a character (U+{ord(error.object[error.start]):04X}) is in a text") from None


def read_canonical(body: bytes) -> Any:
    """The value in a body that is in its canonical form; InexactJson for any other."""
    value = read_strict(body)
    if canonical(value) != body:
        raise _inexact("it is not in its canonical form")
    return value


def read_action(body: bytes) -> tuple[str, dict[str, Any]]:
    """The action and the details in a payload. InexactJson for what is none."""
    match read_canonical(body):
        case {"action": str(action), "details": dict(details), **others} if not others:
            return action, details
    raise _inexact("it is no action with its details")


def payload(action: str, details: Mapping[str, Any]) -> bytes:
    """The bytes that people vote on, and that are executed."""
    return canonical({"action": action, "details": details})


def digest(data: bytes) -> str:
    """SHA-256, in hex."""
    return hashlib.sha256(data).hexdigest()


def number(value: float) -> str:
    """A finite number as ECMAScript writes it: the fewest digits that give it back."""
    if value == 0:
        return "0"
    sign = "-" if value < 0 else ""
    mantissa, _, exponent = repr(abs(float(value))).partition("e")
    whole, _, fraction = mantissa.partition(".")
    written = whole + fraction
    digits = written.lstrip("0")
    point = len(whole) + int(exponent or 0) - (len(written) - len(digits))
    return sign + _placed(digits.rstrip("0"), point)


def _placed(digits: str, point: int) -> str:
    """The digits with their point after so many of them."""
    if len(digits) <= point <= DIGITS_WITHOUT_EXPONENT:
        return digits + "0" * (point - len(digits))
    if 0 < point <= DIGITS_WITHOUT_EXPONENT:
        return f"{digits[:point]}.{digits[point:]}"
    if -ZEROS_WITHOUT_EXPONENT < point <= 0:
        return "0." + "0" * -point + digits
    fraction = f".{digits[1:]}" if len(digits) > 1 else ""
    return f"{digits[0]}{fraction}e{point - 1:+d}"


def _written(value: object, depth: int) -> str:
    match value:
        case str():
            return encode_basestring(value)
        case None | True | False:
            return {None: "null", True: "true", False: "false"}[value]
        case int():
            if not -MAX_WHOLE <= value <= MAX_WHOLE:
                raise _inexact("a whole number is beyond ±(2**53-1): write it as a text")
            return int.__repr__(value)
        case float():
            return number(_checked_real(value))
        case dict() | list() | tuple() | Mapping():
            if depth == MAX_DEPTH:
                raise _inexact(f"it is nested more than {MAX_DEPTH} levels deep")
            if not isinstance(value, list | tuple):
                return _members(value, depth + 1)
            return "[" + ",".join([_written(each, depth + 1) for each in value]) + "]"
        case _:
            raise _inexact(f"a {type(value).__name__} has no place in JSON")


def _members(values: Mapping[Any, object], depth: int) -> str:
    for key in values:
        if not isinstance(key, str):
            raise _inexact(f"a key is a {type(key).__name__}: it must be a text")
    members = sorted(values.items(), key=lambda member: member[0].encode("utf-16-be", "surrogatepass"))
    for (key, _), (following, _) in pairwise(members):
        if key == following:
            raise _inexact(f"the key {quoting.quote(key)} is twice in one object")
    return (
        "{" + ",".join([f"{encode_basestring(key)}:{_written(each, depth)}" for key, each in members]) + "}"
    )


def _checked_real(value: float) -> float:
    if not math.isfinite(value):
        raise _inexact(f"{float.__repr__(value)} is not a number of JSON")
    if MAX_WHOLE < abs(value) < ALL_WHOLE_FROM:
        raise _inexact(f"{number(value)} is a whole number beyond ±(2**53-1): write it as a text")
    return value


def _inexact(why: str) -> errors.InexactJson:
    return errors.InexactJson(why=why)


def _decoded(body: bytes) -> str:
    if body.startswith(BYTE_ORDER_MARK):
        raise _inexact("it begins with a byte order mark")
    try:
        return body.decode()
    except UnicodeDecodeError as error:
        raise _inexact(f"it is not UTF-8 at byte {error.start + 1}") from None


def _check_depth(text: str) -> None:
    """Before anything is read, since reading recurses. Brackets in strings do not count; after a string
    without an end nothing is read any more."""
    if text.count("[") + text.count("{") <= MAX_DEPTH:
        return
    depths = accumulate(map(_STEPS.__getitem__, _BETWEEN_BRACKETS.sub("", text)))
    too_deep = next((nth for nth, depth in enumerate(depths) if depth > MAX_DEPTH), None)
    if too_deep is not None:
        brackets = (each for each in _BRACKETS.finditer(text) if each[1])
        place = next(islice(brackets, too_deep, None)).start()
        raise _inexact(f"it is nested more than {MAX_DEPTH} levels deep at {_place(text, place)}")


def _check_escapes(text: str) -> None:
    """Half a character can only come as an escape: UTF-8 has none."""
    if "\\u" not in text:
        return
    for escape in _ESCAPES.finditer(text):
        if escape[1]:
            raise _inexact(f"half a character (\\{escape[1]}) is at {_place(text, escape.start())}")


def _place(text: str, position: int) -> str:
    line = text.count("\n", 0, position) + 1
    return f"line {line}, column {position - text.rfind(chr(10), 0, position)}"


class _StrictReader:
    """A text that is being read, so that whatever is refused can be found in it."""

    def __init__(self, text: str) -> None:
        self._text = text

    def value(self) -> Any:
        decoder = json.JSONDecoder(
            object_pairs_hook=self._object,
            parse_int=self._whole,
            parse_float=self._real,
            parse_constant=self._constant,
        )
        try:
            return decoder.decode(self._text)
        except json.JSONDecodeError as error:
            why = f"{error.msg[:1].lower()}{error.msg[1:]}".rstrip(": ").removesuffix(" at")
            raise _inexact(f"it is not JSON ({why}) at {_place(self._text, error.pos)}") from None

    def _object(self, members: list[tuple[str, Any]]) -> dict[str, Any]:
        read = dict(members)
        if len(read) == len(members):
            return read
        keys = set()
        for key, _ in members:
            if key in keys:
                raise _inexact(f"the key {quoting.quote(key)} is twice in one object")
            keys.add(key)
        return read

    def _whole(self, literal: str) -> int:
        # Longer ones are not even read: that takes time that grows with the square of the length.
        if len(literal) > len(str(-MAX_WHOLE)) or abs(int(literal)) > MAX_WHOLE:
            self._refuse_number(literal, "is a whole number beyond ±(2**53-1): write it as a text")
        return int(literal)

    def _real(self, literal: str) -> int | float:
        if len(literal) > MAX_NUMBER_CHARACTERS:
            self._refuse_number(literal, f"has more than {MAX_NUMBER_CHARACTERS} characters")
        value = float(literal)
        if math.isinf(value):
            self._refuse_number(literal, "is too large")
        if value == 0 and re.search("[1-9]", re.split("[eE]", literal)[0]):
            self._refuse_number(literal, "is too small: it would be read as 0")
        if MAX_WHOLE < abs(value) < ALL_WHOLE_FROM:
            self._refuse_number(literal, "is a whole number beyond ±(2**53-1): write it as a text")
        return int(value) if abs(value) <= MAX_WHOLE and value.is_integer() else value

    def _constant(self, literal: str) -> NoReturn:
        self._refuse_number(literal, "is not a number of JSON")

    def _refuse_number(self, literal: str, why: str) -> NoReturn:
        places = (each.start() for each in _NUMBERS.finditer(self._text) if each[1] == literal)
        shown = literal if len(literal) <= SHOWN_CHARACTERS else literal[:SHOWN_CHARACTERS] + quoting.ELLIPSIS
        raise _inexact(f"{shown} {why}; it is at {_place(self._text, next(places, 0))}")
