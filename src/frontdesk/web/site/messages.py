"""Rows of a transcript as the page shows them: calls with what came of them, names apart from what was said,
nothing longer than a page can bear."""

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

import msgspec

from frontdesk.app.office.transcripts import ApprovalRow, MessageRow, TurnOutcome
from frontdesk.formats import quoting
from frontdesk.model import calls, messages
from frontdesk.model.messages import Role
from frontdesk.model.turns import TurnState
from frontdesk.web.site import pictures, prose

NAME_CHARACTERS = 80
CALL_CHARACTERS = 4_000
"""Of the arguments or the result of a call."""
LINE_CHARACTERS = 120
WHY_CHARACTERS = 400
FILE_PART, IMAGE_PART = "stored_file", "image_url"
FINISHES = {"stopped": str(TurnState.INTERRUPTED), "error": str(TurnState.FAILED)}
DIGEST = re.compile("[0-9a-f]{64}")
SENDER = re.compile(r"\[([^\[\]\n]{1,100})\](?: |\n|\Z)")
"""What a shared conversation has before each message."""


class ShownCall(msgspec.Struct, kw_only=True):
    """A call of a tool, with its result as soon as there is one."""

    name: str
    arguments: str
    line: str
    """The arguments in a line."""
    at: datetime
    result: str | None = None
    left_out: int = 0
    failed: bool = False
    interrupted: bool = False
    seconds: float | None = None
    thought: str = ""
    """What the agent thought before it, where it called others before."""


class ShownFile(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    size: int | None = None
    kind: str = ""
    digest: str | None = None
    """By which it can be saved."""

    @property
    def is_picture(self) -> bool:
        """Whether the page shows it."""
        return self.digest is not None and pictures.is_shown(self.kind, self.size)


class ShownDecision(msgspec.Struct, frozen=True, kw_only=True):
    """What became of something that the agent asked for."""

    id: str
    action: str
    status: str
    who: str
    seconds: float | None


class ShownEnding(msgspec.Struct, frozen=True, kw_only=True):
    """How a turn ended that was not simply answered."""

    state: str
    at: datetime
    who: str = ""
    why: str = ""


class ShownMessage(msgspec.Struct, frozen=True, kw_only=True):
    number: int
    session_id: str
    anchor: str
    """Its name on the page."""
    kind: str
    """``in`` from people, ``out`` from the agent, ``tool`` a result alone, ``handover``, ``note``, or
    ``unreadable``."""
    at: datetime
    who: str = ""
    text: str = ""
    """As the page shows it, in tags."""
    left_out: int = 0
    """How many characters more there are of it."""
    thought: str = ""
    calls: Sequence[ShownCall] = ()
    files: Sequence[ShownFile] = ()
    undone: str | None = None
    overheard: bool = False
    turn_id: str | None = None
    decisions: Sequence[ShownDecision] = ()
    ending: ShownEnding | None = None
    """What became of its turn, where it is the last of it."""
    finish: str = ""
    """Why the agent said no more, as it is stored."""

    @property
    def failed(self) -> int:
        """How many of its calls failed."""
        return sum(call.failed for call in self.calls)

    @property
    def names(self) -> str:
        """Of the tools that it calls, in a line."""
        return quoting.one_line(" · ".join(call.name for call in self.calls), LINE_CHARACTERS)


def shown_messages(
    rows: Sequence[MessageRow],
    session_id: str,
    person: str,
    *,
    shared: bool = False,
    approvals: Sequence[ApprovalRow] = (),
    endings: Sequence[TurnOutcome] = (),
    goes_on: bool = False,
) -> list[ShownMessage]:
    """The rows, a result with the call that it belongs to where that is among them, the real one where a call
    was taken for interrupted before, and calls that follow one another together. ``goes_on``: the last turn
    has more rows than these."""
    shown: list[ShownMessage] = []
    room = prose.PageRoom()
    waiting: dict[str, ShownCall] = {}
    for row in rows:
        message, at = row["message"], datetime.fromisoformat(row["at"])
        if message is not None and calls.is_result(message):
            call = waiting.get(str(message.get("tool_call_id")))
            if call and (call.result is None or call.interrupted):
                _answer(call, message, at)
                continue
        made = _shown(row, at, session_id, person, room, shared=shared)
        if made.kind == "out":
            waiting |= {named: call for named, call in zip(_ids(message), made.calls, strict=True) if named}
        shown.append(made)
    unfinished = rows[-1]["turn_id"] if goes_on and rows else None
    ends = {each["turn_id"]: each for each in endings if each["turn_id"] != unfinished}
    return _with_endings(_grouped(_with_decisions(shown, approvals)), ends)


def _grouped(shown: Sequence[ShownMessage]) -> list[ShownMessage]:
    """Calls with not a word between them stand with the first of them."""
    kept: list[ShownMessage] = []
    for each in shown:
        if kept and _calls_on(kept[-1], each):
            each.calls[0].thought = each.thought
            kept[-1] = msgspec.structs.replace(
                kept[-1],
                calls=[*kept[-1].calls, *each.calls],
                decisions=(*kept[-1].decisions, *each.decisions),
                finish=each.finish,
            )
        else:
            kept.append(each)
    return kept


def _calls_on(before: ShownMessage, each: ShownMessage) -> bool:
    alike = all(
        getattr(before, name) == getattr(each, name) for name in ("kind", "session_id", "turn_id", "undone")
    )
    return alike and bool(before.calls and each.calls) and not (each.text or each.files)


def _with_endings(shown: list[ShownMessage], endings: Mapping[str, TurnOutcome]) -> list[ShownMessage]:
    """What became of a turn, with the last that there is of it."""
    last = {message.turn_id: place for place, message in enumerate(shown)}
    for place, message in enumerate(shown):
        is_last = message.turn_id is None or last[message.turn_id] == place
        if is_last and (ending := _ending(message, endings.get(message.turn_id or ""))):
            shown[place] = msgspec.structs.replace(message, ending=ending)
    return shown


def _ending(message: ShownMessage, found: TurnOutcome | None) -> ShownEnding | None:
    """As the turn tells it; when that is forgotten, as its last words do."""
    if found is None:
        state = FINISHES.get(message.finish)
        return ShownEnding(state=state, at=message.at) if state else None
    return ShownEnding(
        state=found["state"],
        at=datetime.fromisoformat(found["at"]) if found["at"] else message.at,
        who=quoting.one_line(found["by"] or "", NAME_CHARACTERS),
        why=quoting.one_line(found["why"] or "", WHY_CHARACTERS),
    )


def _with_decisions(shown: list[ShownMessage], approvals: Sequence[ApprovalRow]) -> list[ShownMessage]:
    """Each decision with the first that the agent says in the turn that asked for it."""
    places: dict[str | None, int] = {}
    for place, message in enumerate(shown):
        if message.turn_id not in places or shown[places[message.turn_id]].kind != "out":
            places[message.turn_id] = place
    for asked in approvals:
        if (place := places.get(asked["turn_id"], -1)) >= 0:
            decisions = (*shown[place].decisions, _decision(asked))
            shown[place] = msgspec.structs.replace(shown[place], decisions=decisions)
    return shown


def _decision(asked: ApprovalRow) -> ShownDecision:
    decided = asked["decided_at"]
    begun = datetime.fromisoformat(asked["asked_at"])
    return ShownDecision(
        id=asked["id"],
        action=quoting.one_line(asked["action"], LINE_CHARACTERS),
        status=asked["status"],
        who=_decider(asked),
        seconds=(datetime.fromisoformat(decided) - begun).total_seconds() if decided else None,
    )


def _decider(asked: ApprovalRow) -> str:
    """Who decided, and beside that what they want to be called."""
    known, name = quoting.shown_id(asked["decided_by"] or "", NAME_CHARACTERS), asked["decided_as"]
    return f"{known} ({quoting.quote_name(name, NAME_CHARACTERS)})" if name else known


def anchor_of(row: MessageRow, session_id: str) -> str:
    """The name of a message on the page of a session, which may show others' messages, too."""
    own = row["session_id"] == session_id
    return f"m{row['number']}" if own else f"{row['session_id']}-{row['number']}"


def _ids(message: Mapping[str, Any] | None) -> list[str]:
    return [call.id for call in calls.calls_of(message or {})]


def _shown(
    row: MessageRow, at: datetime, session_id: str, person: str, room: prose.PageRoom, *, shared: bool
) -> ShownMessage:
    message = row["message"]
    facts: dict[str, Any] = {
        "number": row["number"],
        "session_id": row["session_id"],
        "anchor": anchor_of(row, session_id),
        "at": at,
        "undone": row["undone"],
        "turn_id": row["turn_id"],
    }
    if message is None:
        return ShownMessage(kind="unreadable", **facts)
    text, files = messages.text_of(_without_files(message)), list(_files(message))
    match message.get("role"):
        case Role.USER:
            who, said = _sender(text, _one_line(message.get("author")), person, shared=shared)
            overheard = message.get("observed") is True
            return ShownMessage(
                kind="in", who=who, files=files, overheard=overheard, **_said(said, room), **facts
            )
        case Role.ASSISTANT:
            made = [_call(call.name, call.arguments, at) for call in calls.calls_of(message)]
            return ShownMessage(
                kind="out",
                calls=made,
                thought=_thought(message),
                files=files,
                finish=_one_line(message.get("finish_reason")),
                **_said(text, room),
                **facts,
            )
        case Role.TOOL:
            alone = _call(calls.tool_of(message, {}) or "", "", at)
            _answer(alone, message, at)
            alone.line = quoting.one_line(text[: 4 * LINE_CHARACTERS], LINE_CHARACTERS)
            return ShownMessage(kind="tool", calls=[alone], **facts)
    kind = "handover" if message.get("kind") == "handover" else "note"
    return ShownMessage(kind=kind, who=_one_line(message.get("kind")), **_said(text, room), **facts)


def _said(text: str, room: prose.PageRoom) -> dict[str, Any]:
    left = max(0, len(text) - prose.MOST_CHARACTERS)
    return {"text": room.render(text) if text.strip() else "", "left_out": left}


def _sender(text: str, author: str, person: str, *, shared: bool) -> tuple[str, str]:
    """Who says it, and what: what is written from the page has its author, whose name stands before it where
    the conversation is somebody else's, as everybody's does in a shared one."""
    found = SENDER.match(text)
    name = quoting.one_line(found[1], NAME_CHARACTERS) if found else ""
    if found and (shared or (author and name == author.replace("[", "(").replace("]", ")"))):
        return author or name, text[found.end() :]
    return author or person, text


def _thought(message: Mapping[str, Any]) -> str:
    found = message.get("reasoning_content") or message.get("reasoning")
    return found[:CALL_CHARACTERS] if isinstance(found, str) else ""


def _call(name: str, arguments: str, at: datetime) -> ShownCall:
    return ShownCall(
        name=quoting.one_line(name, NAME_CHARACTERS),
        arguments=arguments[:CALL_CHARACTERS],
        line=quoting.one_line(arguments[: 4 * LINE_CHARACTERS], LINE_CHARACTERS),
        left_out=max(0, len(arguments) - CALL_CHARACTERS),
        at=at,
    )


def _answer(call: ShownCall, message: Mapping[str, Any], at: datetime) -> None:
    text = messages.text_of(message)
    call.result = text[:CALL_CHARACTERS]
    call.left_out += max(0, len(text) - CALL_CHARACTERS)
    call.failed = calls.is_failed(message)
    call.interrupted = text == messages.INTERRUPTED
    call.seconds = max(0.0, (at - call.at).total_seconds())


def _without_files(message: Mapping[str, Any]) -> Mapping[str, Any]:
    content = message.get("content")
    if not isinstance(content, list):
        return message
    kept = [part for part in content if not (isinstance(part, Mapping) and part.get("type") == FILE_PART)]
    return {**message, "content": kept}


def _files(message: Mapping[str, Any]) -> Iterable[ShownFile]:
    """The files of a message by their names; pictures that came with it are none of our business to load."""
    content = message.get("content")
    for part in content if isinstance(content, list) else ():
        kind = part.get("type") if isinstance(part, Mapping) else None
        if kind == FILE_PART and isinstance(facts := part.get(FILE_PART), Mapping):
            yield _file(facts)
        elif kind not in (None, "text", FILE_PART):
            yield ShownFile(name=_one_line(kind))
    given = message.get("files") if message.get("role") == Role.ASSISTANT else None
    for facts in given if isinstance(given, list) else ():
        if isinstance(facts, Mapping):
            yield _file(facts)


def _file(facts: Mapping[str, Any]) -> ShownFile:
    size, digest = facts.get("size"), facts.get("digest")
    return ShownFile(
        name=_one_line(facts.get("name")),
        size=size if isinstance(size, int) else None,
        kind=_one_line(facts.get("kind")),
        digest=digest if isinstance(digest, str) and DIGEST.fullmatch(digest) else None,
    )


def _one_line(text: object) -> str:
    return quoting.one_line(text, NAME_CHARACTERS) if isinstance(text, str) else ""
