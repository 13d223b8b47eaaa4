"""What people approved before."""

import msgspec

MOST_COMPARED_BYTES = 64 * 1024
"""With a longer payload none that follows is compared."""


class Precedent(msgspec.Struct, frozen=True, kw_only=True):
    """What people approved before of the same kind."""

    is_first_for_requester: bool
    is_first_for_target: bool
    """For whomever it was asked."""
    payload: bytes | None = None
    """What was approved last for the same credential, unless it is long or was erased."""
