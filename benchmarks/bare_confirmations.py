"""The rows of a confirmation, written into the same tables in as many transactions, and nothing asked."""

import itertools
from collections.abc import Awaitable, Callable
from hashlib import sha256

import apsw
import asyncpg

AGENT, ANN = "token:agent", "token:ann"
PAYLOAD = b'{"action":"send","details":{"number":%d,"text":"%s"}}'
TEXT = b"x" * 300
TERMS = b'{"approvers":[],"quorum":1,"needs_reason":false,"rule":null,"escalate_after_seconds":null}'
BODY = (
    b'{"actor":"token:agent","at":"2026-01-01T00:00:00.000000Z","confirmation_id":"%s","digest":"%s",'
    b'"facts":{"action":"send","requester":"token:agent","status":"pending"},"kind":"submitted"}'
)
HASH = bytes(32)
DIGEST = HASH.hex()
START, MINUTE = 1_767_225_600_000_000, 60_000_000

WRITTEN = "INSERT INTO audit (number, body, previous, hash) VALUES ($1, $2, $3, $4)"
TOLD = "INSERT INTO feed (at, kind, confirmation_id, state) VALUES ($1, $2, $3, $4)"
ASK = (
    """INSERT INTO confirmations (
        id, action, digest, requester, status, asked, terms, timeout_seconds, created_at, expires_at,
        approvals, reads_as, credential, subject, kind_digest
    ) VALUES ($1, $2, $3, $4, 'pending', 1, $5, $6, $7, $8, $9, $10, $11, $12, $13)""",
    "INSERT INTO confirmation_payloads (confirmation_id, payload, description) VALUES ($1, $2, $3)",
    WRITTEN,
    TOLD,
)
DECIDE = (
    "INSERT INTO confirmation_votes (confirmation_id, person, approves, voted_at) VALUES ($1, $2, 1, $3)",
    """UPDATE confirmations SET status = 'approved', resolved_at = $2, resolved_by = $3, approvals = $4
    WHERE id = $1 AND status = 'pending'""",
    WRITTEN,
    TOLD,
)
CARRY_OUT = (
    """UPDATE confirmations SET redeemed_at = $2, redeemed_by = $3
    WHERE id = $1 AND status = 'approved' AND redeemed_at IS NULL""",
    WRITTEN,
    TOLD,
)

Row = tuple[object, ...]
Cycle = Callable[[int], Awaitable[None]]


def rows_of(number: int, places: "itertools.count[int]") -> tuple[tuple[Row, ...], ...]:
    """The values of each statement, by transaction."""
    name, at = f"c_{number:016x}", START + number
    payload = PAYLOAD % (number, TEXT)
    digest = sha256(payload).hexdigest()
    body = BODY % (name.encode(), digest.encode())
    asked = (
        name,
        "send",
        digest,
        AGENT,
        TERMS,
        300,
        at,
        at + 5 * MINUTE,
        b"[]",
        "send",
        AGENT,
        digest,
        DIGEST,
    )
    return (
        (asked, (name, payload, "Send it?"), *_noted(next(places), at, name, body, "submitted")),
        (
            (name, ANN, at),
            (name, at, ANN, b'["token:ann"]'),
            *_noted(next(places), at, name, body, "approved"),
        ),
        ((name, at, AGENT), *_noted(next(places), at, name, body, "redeemed")),
    )


def _noted(place: int, at: int, name: str, body: bytes, kind: str) -> tuple[Row, Row]:
    """Of the audit log and of the feed."""
    return (place, body, HASH, HASH), (at, "confirmation", name, kind)


def on_sqlite(db: apsw.Connection) -> Cycle:
    places, execute = itertools.count(1), db.execute
    transactions = [[sql.replace("$", "?") for sql in each] for each in (ASK, DECIDE, CARRY_OUT)]

    async def cycle(number: int) -> None:
        for statements, rows in zip(transactions, rows_of(number, places), strict=True):
            execute("BEGIN IMMEDIATE")
            for sql, values in zip(statements, rows, strict=True):
                execute(sql, values)
            execute("COMMIT")

    return cycle


def on_postgres(link: "asyncpg.Connection") -> Cycle:
    places = itertools.count(1)

    async def cycle(number: int) -> None:
        for statements, rows in zip((ASK, DECIDE, CARRY_OUT), rows_of(number, places), strict=True):
            async with link.transaction():
                for sql, values in zip(statements, rows, strict=True):
                    await link.execute(sql, *values)

    return cycle
