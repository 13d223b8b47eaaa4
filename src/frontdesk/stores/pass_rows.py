"""What stands in a row of the table of passes."""

from frontdesk.model.access import Role
from frontdesk.model.passes import Pass, PassKind
from frontdesk.stores.columns import PLAIN, TIME, Column, Columns, Records

BYTES = Column(bytes)
PASS = Columns(
    {
        "id": PLAIN,
        "kind": Column(PassKind, str),
        "name": PLAIN,
        "role": Column(Role, str),
        "person": PLAIN,
        "digest": BYTES,
        "proof": BYTES,
        "bound_to": PLAIN,
        "parent": PLAIN,
        "created_at": TIME,
        "expires_at": TIME,
    },
    kept={"revoked_at": TIME, "used_at": TIME},
)
PASSES = Records("pass", Pass, PASS.facts)
