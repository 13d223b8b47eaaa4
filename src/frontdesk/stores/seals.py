"""The key with which places in common logs are sealed, the same on every node and after every start."""

import secrets

from frontdesk.contracts.store import Work
from frontdesk.formats.sealing import PlaceSeal
from frontdesk.stores.work import Noun, reads, writes

KEY_BYTES = 32


class Seals(Noun):
    _seal: PlaceSeal | None = None

    async def seal(self) -> PlaceSeal:
        """What seals; looked up once, and made by whoever is first."""
        if self._seal is None:
            self._seal = PlaceSeal(await self.find() or await self.keep(secrets.token_bytes(KEY_BYTES)))
        return self._seal

    @reads
    def find(self) -> Work[bytes | None]:
        found = yield "seal", {}
        return bytes(found[0][0]) if found else None

    @writes
    def keep(self, key: bytes) -> Work[bytes]:
        """The key that there is, this one if there was none."""
        yield "keep_seal", {"secret": key}
        ((kept,),) = yield "seal", {}
        return bytes(kept)
