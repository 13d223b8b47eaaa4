"""Going back to a checkpoint: whichever way somebody comes, the audit log says who it was."""

from frontdesk.contracts.clock import Clock
from frontdesk.contracts.snapshots import Snapshots
from frontdesk.model.audit import AuditEntry, AuditKind
from frontdesk.model.checkpoints import Checkpoint, Restored
from frontdesk.stores.store import Store


async def restore(
    store: Store,
    snapshots: Snapshots,
    target: Checkpoint,
    path: str | None = None,
    *,
    by: str,
    clock: Clock,
    session_id: str | None = None,
    turn_id: str | None = None,
) -> Restored:
    """Make the directory, or one path in it, what it was. The log has it before anything changes, so that no
    crash hides who began it, and once more with what it came to."""
    about = {"checkpoint": target.id, "number": target.number, "directory": target.directory, "path": path}
    about |= {"undoes": target.before_restore, "turn": turn_id}
    facts = {name: value for name, value in about.items() if value is not None}
    begun = AuditEntry(kind=AuditKind.RESTORE_BEGUN, at=clock.now(), actor=by, facts=facts)
    await store.confirmations.note(begun)
    links = {"session_id": session_id, "turn_id": turn_id}
    restored = await snapshots.restore(target.directory, target.id, path, **links)
    facts |= {"safety": restored.safety.id, "changed": len(restored.written) + len(restored.removed)}
    await store.confirmations.note(AuditEntry(kind=AuditKind.RESTORED, at=clock.now(), actor=by, facts=facts))
    return restored
