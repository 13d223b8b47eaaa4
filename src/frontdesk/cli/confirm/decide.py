"""``frontdesk confirm list``, ``show``, ``approve``, ``deny`` and ``erase``: for people who decide."""

import shlex
import sys
import time
from datetime import UTC, datetime
from typing import Any, TextIO

import click
import msgspec

from frontdesk import errors
from frontdesk.cli import output
from frontdesk.cli.asking import limit_option
from frontdesk.cli.confirm import reaching
from frontdesk.cli.confirm.reaching import ServiceDesk
from frontdesk.cli.output import Report
from frontdesk.confirm import steps
from frontdesk.formats import canonical, cards, quoting
from frontdesk.formats.cards import Card, Known
from frontdesk.model.confirmations import RequesterPause, Status

COLUMN = 13
LIST_LIMIT = 50
ALL = "all"
STATUSES = [ALL, *map(str, Status)]
MOST_NAMED = 60
TOO_LONG = f"{cards.DANGER} too long for a list: look at it with `frontdesk confirm show`"
SPANS = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))
ERASED = "It was erased; its digest is kept."
LEFT_OUT = "Its arguments are not shown here; its digest is."
PAUSED = "{pause} To have people asked again: frontdesk confirm lift {who}"
NOTHING_WAITS = "Nothing waits for a decision. All requests: frontdesk confirm list --status all"
REVEAL = "See it with: frontdesk confirm show {id} --reveal{url}"
ALL_WORDS = "frontdesk confirm show {id}{url}"
WITHOUT = "; without a decision it is refused then"
UNDECIDED = "{id} is not decided."
LOOK = "Show what is hidden? The log says that you looked."
LOOK_FIRST = "Say --reveal to see it."
TYPE_IT = ", with --target"
TAKES_A_YES = (
    "Nobody is at a terminal to be asked. Say --yes, or --digest with the digest of what you have seen."
)

Plain = dict[str, Any]


@click.command(
    "list",
    epilog=output.examples("frontdesk confirm list", "frontdesk confirm list --status all --limit 10 --json"),
)
@click.option(
    "--status",
    type=click.Choice(STATUSES),
    default=str(Status.PENDING),
    show_default=True,
    help="Only requests in this state.",
)
@limit_option(LIST_LIMIT)
@reaching.answering
def list_command(service: ServiceDesk, status: str, limit: int) -> Report:
    """List requests, newest first: those that wait for a decision, unless told otherwise.

    Of each: what happens without an answer, what is unusual, what will be done, who asks and since when.
    """
    chosen = "" if status == ALL else f"&status={status}"
    found = service.say("GET", f"/confirm?limit={limit}{chosen}")["confirmations"]
    nothing = {str(Status.PENDING): NOTHING_WAITS, ALL: "There are no requests yet."}
    if not found:
        return Report(found, nothing.get(status, f"No request is {status}."))
    now = time.time()
    return Report(found, output.fitted("\n\n".join(_entry(each, now) for each in found)))


def _entry(asked: Plain, now: float) -> str:
    """A request in a list; what is the agent's stands below our line, indented."""
    card, who = _card(asked), quoting.quote_within(asked["requester"], MOST_NAMED)
    done = "".join(map(str, card.headline)) if card else quoting.quote_within(asked["action"], MOST_NAMED)
    person = (asked.get("known") or {}).get("person")
    lines = (
        f"{asked['id']}  {_standing(asked, now)}",
        "  ".join(card.flags) if card else TOO_LONG if asked["status"] == Status.PENDING else "",
        f"{cards.DONE} {done}",
        f"asked {_span(now - asked['created_at'])} ago by {who}" + (f", for {person}" if person else ""),
    )
    return "\n  ".join(line for line in lines if line)


def _standing(asked: Plain, now: float) -> str:
    """What became of it, or what does if nobody decides."""
    if asked["status"] == Status.PENDING:
        more = _missing(asked) if asked["quorum"] > 1 else ""
        return f"is refused in {_span(asked['expires_at'] - now)} unless somebody decides{more}"
    by = quoting.one_line(str(asked["resolved_by"]), MOST_NAMED)
    return f"was {asked['status']} {_span(now - asked['resolved_at'])} ago by {by}"


def _span(seconds: float) -> str:
    whole = max(int(seconds), 0)
    for size, unit in SPANS:
        if whole >= 2 * size or size == 1:
            return f"{whole // size} {unit}"
    raise AssertionError(SPANS)


def _time(seconds: float | None) -> str:
    return "-" if seconds is None else output.local_time(datetime.fromtimestamp(seconds, UTC).isoformat())


@click.command(
    "show",
    epilog=output.examples(
        "frontdesk confirm show c_19345b7a590bd322", "frontdesk confirm show c_19345b7a590bd322 --reveal"
    ),
)
@click.argument("confirmation_id", metavar="ID")
@click.option("--reveal", is_flag=True, help="Show hidden values, too; the audit log says that you did.")
@reaching.answering
def show_command(service: ServiceDesk, confirmation_id: str, reveal: bool) -> Report:
    """Show a request: the exact action, all of it, and what became of it.

    Passwords, keys and tokens are hidden, and counted. With --reveal they are shown to whoever may decide.
    """
    asked = _say(service, "GET", confirmation_id)
    if reveal:
        told = _say(service, "POST", confirmation_id, "/reveal")
        asked |= {"details": told["payload"]["details"]}
    return Report(asked, _told(asked, service.url, sys.stdout, reveal=reveal, all_words=True))


def _say(service: ServiceDesk, method: str, confirmation_id: str, verb: str = "", said: Any = None) -> Plain:
    """What the service answers about a request."""
    path = f"{steps.path_of(confirmation_id)}{verb}"
    told: Plain = service.say(method, path, said, about=confirmation_id)
    return told


def _told(asked: Plain, url: str | None, file: TextIO, **chosen: bool) -> str:
    """What is known of a request, and its card, for where it is shown; the action and its target last."""
    card = _card(asked, **chosen)
    given = f" --url {url}" if url else ""
    where, how = (text.format(id=asked["id"], url=given) for text in (ALL_WORDS, REVEAL))
    about = card.text(where=where, how=how) if card else LEFT_OUT if asked.get("details_omitted") else ERASED
    return output.fitted("\n\n".join((output.in_lines(_facts(asked), COLUMN), about)), file)


def _facts(asked: Plain) -> dict[str, str]:
    facts = {
        "id": asked["id"],
        "status": asked["status"],
        "requester": quoting.quote(asked["requester"]),
        "session": asked["session_key"] and quoting.quote(asked["session_key"]),
        "asked": _time(asked["created_at"]),
        "until": _time(asked["expires_at"]) + (WITHOUT if asked["status"] == Status.PENDING else ""),
        "approved by": ", ".join(asked["approvals"]) + _missing(asked) if asked["approvals"] else None,
        "decided by": asked["resolved_by"],
        "decided": _time(asked["resolved_at"]) if asked["resolved_at"] else None,
        "reason": asked["reason"],
        "used": _time(asked["redeemed_at"]) if asked["redeemed_at"] else None,
        "asks again": asked["renewal_of"],
        "digest": asked["digest"],
    }
    return {name: quoting.one_line(str(fact)) for name, fact in facts.items() if fact is not None}


def _missing(asked: Plain) -> str:
    missing = asked["quorum"] - len(asked["approvals"])
    return f" ({missing} more needed)" if missing > 0 else ""


def _card(asked: Plain, *, reveal: bool = False, all_words: bool = False) -> Card | None:
    """The card of the bytes that the digest is of, put together here; None where the arguments are not."""
    if asked["details"] is None:
        return None
    payload = canonical.payload(asked["action"], asked["details"])
    if canonical.digest(payload) != asked["digest"]:
        raise errors.DigestMismatch(confirmation_id=asked["id"])
    said = asked["description"], asked["requester"]
    known = msgspec.convert(asked.get("known") or {}, Known)
    return cards.make(payload, *said, reveal=reveal, all_words=all_words, known=known)


@click.command(
    "approve",
    epilog=output.examples(
        "frontdesk confirm approve c_19345b7a590bd322",
        'frontdesk confirm approve c_19345b7a590bd322 --yes --reason "the invoice is here"',
    ),
)
@click.argument("confirmation_id", metavar="ID")
@click.option("--name", "approver", help="What you want to be called, beside who you are.")
@click.option("--reason", help="Why; some rules ask for it.")
@click.option(
    "--digest", metavar="HEX", help="Approve only the action with this digest, without being asked."
)
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option("--reveal", is_flag=True, help="Show hidden values first; the audit log says that you did.")
@click.option("--target", metavar="TEXT", help="What one of the ten is about, as you would type it.")
@reaching.answering
def approve_command(
    service: ServiceDesk, /, confirmation_id: str, yes: bool, reveal: bool, target: str | None, **said: Any
) -> Report:
    """Allow an action: it is shown, and you are asked.

    It may be carried out once then, within a minute, exactly as it is shown. What is hidden has to be looked
    at first, and for one of the ten its target typed. In a script nobody can be asked: say --yes there, or
    --digest with the digest of what you have seen, and --reveal and --target where they are needed.
    """
    asked = _say(service, "GET", confirmation_id)
    asks = not yes and said["digest"] is None
    card = _card(asked)
    if card and asked["status"] == Status.PENDING:
        if asks:
            output.require_terminal(TAKES_A_YES)
            output.tell(f"{_told(asked, service.url, sys.stderr)}\n")
        _look(service, asked, card, reveal=reveal, asks=asks)
        _type(asked, card, target, asks=asks)
        if asks and not output.ask_yes("Approve exactly this?"):
            return Report(asked, UNDECIDED.format(id=asked["id"]), good=False)
    said["digest"] = said["digest"] or asked["digest"]
    return _decide(service, confirmation_id, "/approve", said)


def _look(service: ServiceDesk, asked: Plain, card: Card, *, reveal: bool, asks: bool) -> None:
    """Show what is hidden to whoever wants to see it. NotLookedAt when nobody does."""
    looks = bool(card.hidden) and (reveal or (asks and output.ask_yes(LOOK)))
    if looks:
        told = _say(service, "POST", asked["id"], "/reveal")
        whole = _card(asked | {"details": told["payload"]["details"]}, reveal=True)
        if whole:
            output.tell(output.fitted(f"\n{whole.arguments()}\n\n{whole.closing()}\n", sys.stderr))
    card.check_looked(asked["id"], looks, LOOK_FIRST)


def _type(asked: Plain, card: Card, target: str | None, *, asks: bool) -> None:
    """Have the target typed where it has to be. TargetMissing."""
    if card.typed and target is None and asks:
        target = output.ask_text(f"To approve, type {card.typed.what}")
    card.check_typed(asked["id"], target, "" if asks else TYPE_IT)


@click.command(
    "deny", epilog=output.examples('frontdesk confirm deny c_19345b7a590bd322 --reason "not on a Friday"')
)
@click.argument("confirmation_id", metavar="ID")
@click.option("--name", "denier", help="What you want to be called, beside who you are.")
@click.option("--reason", help="Why; the agent is told.")
@reaching.answering
def deny_command(service: ServiceDesk, /, confirmation_id: str, **said: Any) -> Report:
    """Refuse an action. The same one of the same agent is refused at once for ten minutes."""
    return _decide(service, confirmation_id, "/deny", said)


def _decide(service: ServiceDesk, confirmation_id: str, verb: str, said: Plain) -> Report:
    given = {name: value for name, value in said.items() if value is not None}
    decided = _say(service, "POST", confirmation_id, verb, given)
    waits = decided["status"] == Status.PENDING
    state = f"still waits{_missing(decided)}" if waits else f"is {decided['status']}"
    text = f"{decided['id']} ({quoting.quote(decided['action'])}) {state}."
    pause = msgspec.convert(decided.get("pause"), RequesterPause | None)
    doubts = [PAUSED.format(pause=pause, who=shlex.quote(pause.requester))] if pause else []
    began = {"pause": decided["pause"]} if pause else {}
    return Report(lambda: _say(service, "GET", confirmation_id) | began, text, doubts=doubts)


@click.command("erase", epilog=output.examples("frontdesk confirm erase c_19345b7a590bd322"))
@click.argument("confirmation_id", metavar="ID")
@click.option("--yes", is_flag=True, help="Do not ask.")
@reaching.answering
def erase_command(service: ServiceDesk, confirmation_id: str, yes: bool) -> Report:
    """Forget the arguments, description and reasons of a decided request.

    The audit log stays whole: it has digests only.
    """
    if not yes:
        question = f"Forget what {confirmation_id} was about? It cannot be had back"
        output.agree(question, "Nobody is at a terminal to be asked. Say --yes.")
    erased = _say(service, "POST", confirmation_id, "/erase")
    return Report(erased, f"{erased['id']} is erased; its digest {erased['digest']} stays.")
