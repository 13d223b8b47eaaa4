"""Signatures of the Standard Webhooks form: who sent a request, and that nobody changed it on the way."""

import base64
import hashlib
import hmac
import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import lru_cache

from frontdesk import errors

ID = "webhook-id"
TIMESTAMP = "webhook-timestamp"
SIGNATURE = "webhook-signature"

TOLERANCE_SECONDS = 300
MAX_ID_CHARACTERS = 256
MAX_SIGNATURES = 32
MIN_SECRET_BYTES = 16
SECRETS_KEPT = 64

_SECRET_PREFIX = "whsec_"
_VERSION = "v1,"
_READABLE_ID = re.compile(rf"[!-~]{{1,{MAX_ID_CHARACTERS}}}")
_SECONDS = re.compile(r"[0-9]{1,12}")


def sign(secret: str, message_id: str, timestamp: int, body: bytes) -> str:
    """The signature of a body that is sent under this id at this time."""
    signed = b".".join((message_id.encode(), str(timestamp).encode(), body))
    digest = hmac.new(secret_bytes(secret), signed, hashlib.sha256).digest()
    return _VERSION + base64.b64encode(digest).decode()


def signed_headers(secret: str, message_id: str, at: datetime, body: bytes) -> dict[str, str]:
    """The headers that prove the body to whoever has the secret."""
    timestamp = int(at.timestamp())
    signature = sign(secret, message_id, timestamp, body)
    return {ID: message_id, TIMESTAMP: str(timestamp), SIGNATURE: signature}


def verify(secrets: Sequence[str], headers: Mapping[str, str], body: bytes, *, now: datetime) -> str:
    """The id of a request that was signed with one of the secrets within the last minutes.

    The headers go by lower-case name. Raises SignatureMissing, SignatureStale or SignatureWrong.
    """
    message_id = _header(headers, ID, _READABLE_ID, "an id of visible ASCII characters")
    timestamp = int(_header(headers, TIMESTAMP, _SECONDS, "seconds since 1970"))
    given = _signatures(headers)
    seconds = abs(int(now.timestamp()) - timestamp)
    if seconds > TOLERANCE_SECONDS:
        raise errors.SignatureStale(seconds=seconds, allowed=TOLERANCE_SECONDS)
    matches = 0
    for secret in secrets:
        expected = sign(secret, message_id, timestamp, body).encode()
        # Every one is compared, so that it takes the same time whatever they hold.
        for each in given:
            matches += hmac.compare_digest(expected, each.encode("utf-8", "replace"))
    if not matches:
        raise errors.SignatureWrong()
    return message_id


@lru_cache(SECRETS_KEPT)
def secret_bytes(secret: str) -> bytes:
    """The key in a secret: ``whsec_`` and base64, or any other text as it is."""
    key = secret.encode()
    if secret.startswith(_SECRET_PREFIX):
        encoded = secret.removeprefix(_SECRET_PREFIX).rstrip("=")
        try:
            key = base64.b64decode(encoded + "=" * (-len(encoded) % 4), validate=True)
        except ValueError:
            why = "after whsec_ comes no base64"
            raise errors.InvalidInput(what="The webhook secret", why=why) from None
    if len(key) < MIN_SECRET_BYTES:
        raise errors.InvalidInput(what="The webhook secret", why=f"use at least {MIN_SECRET_BYTES} bytes")
    return key


def _header(headers: Mapping[str, str], name: str, form: re.Pattern[str], wanted: str) -> str:
    value = headers.get(name, "")
    if not form.fullmatch(value):
        raise errors.SignatureMissing(header=name, why=f"it must be {wanted}")
    return value


def _signatures(headers: Mapping[str, str]) -> list[str]:
    """The signatures of the version that we know; others stand beside them when a sender changes over."""
    given = headers.get(SIGNATURE, "").split(" ")[:MAX_SIGNATURES]
    known = [each for each in given if each.startswith(_VERSION)]
    if not known:
        raise errors.SignatureMissing(header=SIGNATURE, why=f"it must begin with {_VERSION}")
    return known
