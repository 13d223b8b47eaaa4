"""A question: what somebody at the terminal is asked about a request, one step after the other."""

import asyncio
import enum
from typing import Self

import msgspec

from frontdesk.app.office import Plain
from frontdesk.app.terminal import Terminal
from frontdesk.cli import output
from frontdesk.cli.chat.seats import Asking
from frontdesk.formats.cards import Card
from frontdesk.model.confirmations import Status

HEADING = "{id} waits for your decision until {end}. Without one it is refused."
ALLOW = "Allow it? yes or no: "
ALLOW_UNSEEN = "Allow it? show or no: "
TYPE = "To approve, type {what}: "
WHY = "Why? "
SHOW_IT = "Type show to see it."
ALL_WORDS = "frontdesk confirm show {id}"
LOOK_FIRST = "Something is hidden: type show to see it before you say yes, or no."
ANOTHER = "That is not {what}. Nothing is decided."
UNDECIDED = "Nothing is decided."
ARMED_AFTER_SECONDS = 1.0
"""Before that nobody has read it: the yes was meant for something else."""
TOO_FAST = "That was too fast: nothing is decided. Read what is asked, and say it again."

YES, NO, SHOW = ("yes", "y"), ("no", "n"), "show"


class QuestionStep(enum.Enum):
    ANSWER = "yes, no or show"
    TARGET = "what one of the ten is about"
    REASON = "why, where a rule wants to know"


class Question:
    def __init__(self, terminal: Terminal, chat: str, told: Plain, card: Card) -> None:
        self.id: str = told["id"]
        self.is_decided = False
        self._terminal = terminal
        self._chat = chat
        self._told = told
        self._card = card
        self._hides = bool(card.hidden)
        self._looked = not card.hidden
        self._step = QuestionStep.ANSWER
        self._approves = False
        self._target: str | None = None
        self._shown_at = asyncio.get_running_loop().time()

    @classmethod
    async def open(cls, terminal: Terminal, chat: str, confirmation_id: str) -> Self | None:
        """The question about a request; None when nobody can decide about it any more."""
        told = await terminal.question(confirmation_id, chat)
        if told["status"] != Status.PENDING or told["card"] is None:
            return None
        return cls(terminal, chat, told, msgspec.convert(told["card"], Card))

    @property
    def text(self) -> str:
        """What it is about; the action and its target last."""
        heading = HEADING.format(id=self.id, end=output.local_time(self._told["expires_at"]))
        return "\n\n".join((heading, self._card.text(where=ALL_WORDS.format(id=self.id), how=SHOW_IT)))

    @property
    def asking(self) -> Asking:
        return Asking(self.id, self._label())

    def _label(self) -> str:
        match self._step:
            case QuestionStep.TARGET if self._card.typed:
                return TYPE.format(what=self._card.typed.what)
            case QuestionStep.REASON:
                return WHY
        return ALLOW if self._looked else ALLOW_UNSEEN

    async def answer(self, said: str) -> str | None:
        """What is said to that; None when it is no answer, but a message to the agent."""
        match self._step:
            case QuestionStep.TARGET:
                return await self._take_target(said)
            case QuestionStep.REASON:
                return await self._decide(said) if said else self._begin_anew(UNDECIDED)
        word = said.lower()
        if word == SHOW:
            return await self._show()
        if word in YES and not self._looked:
            return LOOK_FIRST
        if word not in (*YES, *NO):
            return None
        if word in YES and asyncio.get_running_loop().time() - self._shown_at < ARMED_AFTER_SECONDS:
            return TOO_FAST
        self._approves = word in YES
        if self._approves and self._card.typed:
            self._step = QuestionStep.TARGET
            return ""
        return await self._explain()

    async def _show(self) -> str:
        """All of it, with what is hidden."""
        told = await self._terminal.question(self.id, self._chat, reveal=self._hides)
        if told["card"] is not None:
            self._card, self._looked = msgspec.convert(told["card"], Card), True
            self._shown_at = asyncio.get_running_loop().time()
        return self.text

    async def _take_target(self, said: str) -> str:
        typed = self._card.typed
        if typed and not typed.is_said(said):
            return self._begin_anew(ANOTHER.format(what=typed.what) if said else UNDECIDED)
        self._target = said
        return await self._explain()

    async def _explain(self) -> str:
        if self._told["needs_reason"]:
            self._step = QuestionStep.REASON
            return ""
        return await self._decide()

    async def _decide(self, reason: str | None = None) -> str:
        self._step = QuestionStep.ANSWER
        told = await self._terminal.decide(
            self.id,
            self._told["digest"],
            self._approves,
            self._chat,
            looked=self._looked,
            target=self._target,
            reason=reason,
        )
        self.is_decided = True
        return told

    def _begin_anew(self, why: str) -> str:
        self._step, self._target = QuestionStep.ANSWER, None
        return why
