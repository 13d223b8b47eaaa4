"""Lanes: who works on what. Every write under a lease first makes sure that the lease still holds."""

from datetime import datetime

import msgspec
from msgspec.structs import asdict

from frontdesk import errors
from frontdesk.contracts.store import Work
from frontdesk.model import lanes
from frontdesk.stores.columns import MICROS_A_SECOND, to_micros
from frontdesk.stores.work import value

NEXT = {
    lanes.LaneKind.TURN: "next_queued",
    lanes.LaneKind.CONTROL: "next_queued",
    lanes.LaneKind.CHAT: "next_pending",
}
FREE = {
    lanes.LaneKind.TURN: "free_turn_lane",
    lanes.LaneKind.CONTROL: "free_turn_lane",
    lanes.LaneKind.CHAT: "free_chat_lane",
}


UNSHARED = {"full": "[]", "taken": "{}", "share": 1_000_000}


def line_up(lane: str, due_at: datetime, party: str = "") -> Work[None]:
    """Something of somebody's waits in the lane."""
    values = {"lane": lane, "kind": str(lanes.kind_of(lane)), "due_at": to_micros(due_at), "party": party}
    yield "line_up", values


def unlined(lane: str) -> Work[None]:
    """Nothing was added to the lane after all."""
    yield "move_due", {"lane": lane, "due_at": (yield from _next_due(lane))}


def claim_lanes(
    kind: lanes.LaneKind,
    node: int,
    limit: int,
    now: datetime,
    lease_seconds: float,
    places: lanes.Sharing = lanes.UNSHARED,
) -> Work[list[lanes.Lease]]:
    """Take free lanes with something due. Those that another node takes at this moment are left out, not
    waited for; the tokens that it raises are never given twice."""
    values = {"kind": str(kind), "node": node, "now": to_micros(now)}
    values |= {"lease_micros": round(lease_seconds * MICROS_A_SECOND)}
    leases: list[lanes.Lease] = []
    tried: list[str] | None = None
    for level in places.levels:
        # Of what is due only the longest waiting is looked at, which may be one party's: so this is asked
        # again, without those who have so many by now.
        while len(leases) < limit and (full := places.full(level)) != tried:
            shares = {"full": _json(full), "taken": _json(places.taken), "share": level}
            found = yield "claim_lanes", {"limit": limit - len(leases), **shares, **values}
            leases += [lanes.Lease(lane=name, node=node, token=token) for name, token, _ in found]
            places, tried = places.with_taken(party for _, _, party in found), full
            if not places.full(level):
                return leases  # nothing was left out
    if len(leases) < limit:
        found = yield "claim_lanes", {"limit": limit - len(leases), **UNSHARED, **values}
        leases += [lanes.Lease(lane=name, node=node, token=token) for name, token, _ in found]
    return leases


def _json(of_parties: list[str] | dict[str, int]) -> str:
    return msgspec.json.encode(of_parties).decode()


def take_lane(lane: str, taker: lanes.Taker) -> Work[lanes.Lease | None]:
    """A lane in which nothing waits and nobody works, or None. Its row decides, like everybody's claim."""
    kind = lanes.kind_of(lane)
    if kind is lanes.LaneKind.BOX:
        return None
    values = {"lane": lane, "kind": str(kind), "node": taker.node}
    found = yield "take_lane", {"lease_micros": round(taker.lease_seconds * MICROS_A_SECOND), **values}
    return lanes.Lease(lane=lane, node=taker.node, token=found[0][0]) if found else None


def take_turn_lane(lane: str, party: str, taker: lanes.Taker, now: int) -> Work[lanes.Lease | None]:
    """The same for a turn that has come in; None also while others wait to be begun."""
    values = {"lane": lane, "kind": str(lanes.kind_of(lane)), "party": party, "now": now}
    lease = {"node": taker.node, "lease_micros": round(taker.lease_seconds * MICROS_A_SECOND)}
    found = yield "take_turn_lane", {**values, **lease}
    return lanes.Lease(lane=lane, node=taker.node, token=found[0][0]) if found else None


def hold(lease: lanes.Lease) -> Work[None]:
    """Go on only while the lease holds; until the transaction ends nobody can take it."""
    if not (yield "hold_lane", asdict(lease)):
        raise errors.LeaseLost(lane=lease.lane)


def free(lane: str) -> Work[bool]:
    """Let go of a lane that this transaction has locked; whether something waits in it.

    Whoever adds to a lane locks it first. So nothing can come in between what is found here and the commit;
    without the lock it would be found by a look that is older than the wait for it.
    """
    ((due_at,),) = yield FREE[lanes.kind_of(lane)], {"lane": lane}
    return due_at is not None


def fence(lane: str) -> Work[None]:
    """Take a lane from its holder, whose writes are refused from now on."""
    yield "fence_lane", {"lane": lane, "due_at": (yield from _next_due(lane))}


def _next_due(lane: str) -> Work[int | None]:
    kind = lanes.kind_of(lane)
    return (yield from value(NEXT[kind], lane=lane)) if kind in NEXT else None
