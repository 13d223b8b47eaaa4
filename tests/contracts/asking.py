"""Requests, votes and rules that the tests of confirmations share."""

import hashlib
import itertools
import json
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

from frontdesk import Platform, SessionSource
from frontdesk.contracts.confirmations import Counting, Persons, Redeemer, Redemption
from frontdesk.model import audit, lanes
from frontdesk.model.confirmations import Confirmation, Settings, Submission, Submitted, Terms, Vote
from frontdesk.model.deliveries import Delivery
from frontdesk.model.people import Person
from frontdesk.model.rules import Effect, Rule, Ruling
from frontdesk.stores.confirmations import Confirmations
from frontdesk.stores.store import Store
from frontdesk.testing import SettableClock

AGENT, ANN, BOB = "token:agent", "token:ann", "token:bob"
CHAT = SessionSource(platform=Platform.WEBHOOK, chat_id="c1", user_id="u1", account="shop")
ASK = Ruling(effect=Effect.ASK)
UNLIMITED = Settings(rate_limit=10**9, prompts_per_hour=10**9)


def request(action: str = "deploy", *, target: object = None, **fields: Any) -> Submission:
    """A submission of an action with one argument, which no other action has unless it is told."""
    details = {"target": f"the {action}" if target is None else target}
    payload = json.dumps({"action": action, "details": details}, separators=(",", ":")).encode()
    values = {"description": f"please {action}", "requester": AGENT} | fields
    digest = hashlib.sha256(payload).hexdigest()
    return Submission(action=action, payload=payload, digest=digest, **values)


def ruling(effect: Effect, rule: str = "r1", **terms: Any) -> Ruling:
    return Ruling(effect=effect, terms=Terms(rule=rule, **terms))


def on_terms(**terms: Any) -> Ruling:
    return ruling(Effect.ASK, **terms)


def anybody(_: Confirmation, __: Person) -> None:
    """Whoever comes may decide."""


async def pages(kept: Confirmations, size: int = 100) -> AsyncIterator[Sequence[audit.Row]]:
    """The whole audit log, some rows at a time."""
    after = 0
    while rows := await kept.audit_rows(after, size):
        yield rows
        after = rows[-1].number


class Asker:
    """One node's confirmations, at the clock's time; remembers whom it told of what."""

    def __init__(self, store: Store, clock: SettableClock, name: str = "n") -> None:
        self.store = store
        self.kept = store.confirmations
        self.clock = clock
        self.told: list[Confirmation] = []
        self._name = name
        self._numbers = itertools.count(1)

    def new_id(self) -> str:
        return f"{self._name}{next(self._numbers)}"

    def tell(self, asked: Confirmation, _: Sequence[Delivery] = ()) -> Sequence[Delivery]:
        name = f"{asked.id}:{asked.status}:{len(self.told)}"
        self.told.append(asked)
        lane = lanes.chat_lane(CHAT)
        return [Delivery(id=name, lane=lane, to=CHAT, text=asked.action, created_at=self.clock.now())]

    async def submit(
        self,
        submission: Submission | None = None,
        decided: Ruling | Callable[[Sequence[Rule]], Ruling] = ASK,
        settings: Settings = UNLIMITED,
    ) -> Submitted:
        decide = decided if callable(decided) else lambda _: decided
        return await self.kept.submit(
            submission or request(), decide, settings, self.clock.now(), new_id=self.new_id, tell=self.tell
        )

    async def ask(self, submission: Submission | None = None, decided: Ruling = ASK) -> Confirmation:
        """Something that waits, or was decided at once."""
        return (await self.submit(submission, decided)).confirmation

    async def vote(
        self,
        asked: Confirmation | str,
        *,
        by: str = ANN,
        check: Any = anybody,
        persons: Persons = (),
        **fields: Any,
    ) -> Confirmation:
        name = asked if isinstance(asked, str) else asked.id
        vote = Vote(by=by, **{"approves": True} | fields)
        return await self.kept.vote(
            name, check, vote, self.clock.now(), tell=self.tell, counting=Counting(persons=persons)
        )

    async def deny(self, asked: Confirmation | str, **fields: Any) -> Confirmation:
        return await self.vote(asked, approves=False, **fields)

    async def approved(self, submission: Submission | None = None) -> Confirmation:
        return await self.vote(await self.ask(submission))

    async def redeem(self, asked: Confirmation, digest: str | None = None, by: str = AGENT) -> Redemption:
        return await self.kept.redeem(
            asked.id,
            asked.digest if digest is None else digest,
            Redeemer(by=by),
            self.clock.now(),
            new_id=self.new_id,
            tell=self.tell,
        )

    async def expire(self, limit: int = 100) -> Sequence[Confirmation]:
        return await self.kept.expire(self.clock.now(), limit, tell=self.tell)

    async def escalate(self, limit: int = 100) -> Sequence[Confirmation]:
        return await self.kept.escalate(self.clock.now(), limit, tell=self.tell)

    async def reveal(self, asked: Confirmation, check: Any = anybody) -> Confirmation:
        return await self.kept.reveal(asked.id, check, ANN, self.clock.now())

    async def erase(self, asked: Confirmation) -> bool:
        return await self.kept.erase(asked.id, ANN, self.clock.now())

    async def add_rule(self, name: str = "r1", effect: Effect = Effect.DENY, **fields: Any) -> Rule:
        rule = Rule(id=name, effect=effect, created_by=ANN, created_at=self.clock.now(), **fields)
        await self.kept.add_rule(rule, self.clock.now())
        return rule

    async def rules(self) -> Sequence[Rule]:
        return await self.kept.rules(self.clock.now())

    async def entries(self) -> list[audit.AuditEntry]:
        """The whole log, oldest first."""
        return [row.entry for row in await self.kept.audit_rows(0, 10**6)]

    async def kinds(self) -> list[str]:
        return [str(entry.kind) for entry in await self.entries()]
