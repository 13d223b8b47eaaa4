"""Words that only we can read and write, each for one holder, whom it tells nothing: not even whether two of
them say the same."""

import base64
import binascii
import hashlib
import hmac
import secrets

NONCE_BYTES = 12
MARK_BYTES = 16
MAX_CHARACTERS = 3_000


class PlaceSeal:
    """Covers what is said, and knows it again."""

    def __init__(self, key: bytes) -> None:
        self._covering = hmac.digest(key, b"cover", "sha256")
        self._marking = hmac.digest(key, b"mark", "sha256")

    def close(self, said: bytes, holder: str) -> str:
        """What is said, for this holder."""
        nonce = secrets.token_bytes(NONCE_BYTES)
        covered = self._cover(nonce, said)
        written = nonce + self._mark(nonce, covered, holder) + covered
        return base64.urlsafe_b64encode(written).rstrip(b"=").decode()

    def open(self, written: str, holder: str) -> bytes | None:
        """What was said; None for what was not closed for this holder."""
        if len(written) > MAX_CHARACTERS:
            return None
        try:
            given = base64.b64decode(written + "=" * (-len(written) % 4), b"-_", validate=True)
        except (ValueError, binascii.Error):
            return None
        nonce, rest = given[:NONCE_BYTES], given[NONCE_BYTES:]
        mark, covered = rest[:MARK_BYTES], rest[MARK_BYTES:]
        if not hmac.compare_digest(mark, self._mark(nonce, covered, holder)):
            return None
        return self._cover(nonce, covered)

    def _cover(self, nonce: bytes, said: bytes) -> bytes:
        stream = hashlib.shake_256(self._covering + nonce).digest(len(said))
        return (int.from_bytes(said) ^ int.from_bytes(stream)).to_bytes(len(said))

    def _mark(self, nonce: bytes, covered: bytes, holder: str) -> bytes:
        known = nonce + covered + holder.encode("utf-8", "surrogatepass")
        return hmac.digest(self._marking, len(covered).to_bytes(4) + known, "sha256")[:MARK_BYTES]
