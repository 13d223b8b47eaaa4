"""What the pages for approvers look like."""

from collections.abc import Sequence
from datetime import UTC, datetime

from frontdesk.formats import actions, quoting
from frontdesk.model.confirmations import GRANT_SECONDS, MAX_TEXT_CHARACTERS, Caller, Confirmation, Status
from frontdesk.web.confirmations.markup import Markup, join, tag, void
from frontdesk.web.confirmations.sessions import PATH

SESSION = f"{PATH}/session"
SESSION_END = f"{SESSION}/end"

ERASED = "What it was about was erased."
DECIDE_BY = "Decide by the action above, not by these words."
SIGN_IN_WITH = "It was shown when the service first started, and is in a file that only its owner can read."
NO_SCRIPT = "Deciding takes JavaScript, which is switched off here."
OUTCOMES = {
    Status.APPROVED: f"Approved. It can be carried out once, within {GRANT_SECONDS} seconds.",
    Status.DENIED: "Denied. It will not be carried out.",
    Status.EXPIRED: "It was too late: nobody decided in time.",
}
SO_FAR = "Your yes counts: {said} of {quorum} so far."


def title(asked: Confirmation) -> str:
    return f"Allow {quoting.one_line(asked.action)}?"


def outcome(asked: Confirmation) -> str:
    """What a decision has led to."""
    if asked.status is Status.PENDING:
        return SO_FAR.format(said=len(asked.approvals), quorum=asked.terms.quorum)
    return OUTCOMES[asked.status]


def sign_in(note: str | None = None) -> Markup:
    return tag(
        "main",
        tag("h1", "Approvals"),
        tag("p", note) if note else Markup(),
        tag(
            "form",
            tag("label", "Your approver’s token", for_="token"),
            void("input", id="token", type="password", autocomplete="current-password", required=True),
            tag("p", SIGN_IN_WITH, class_="note"),
            tag("button", "Sign in"),
            id="sign-in",
            data_session=SESSION,
        ),
        _ending(),
    )


def waiting(found: Sequence[Confirmation], caller: Caller, now: datetime) -> Markup:
    """Everything that waits, newest first."""
    heads = tag("tr", *(tag("th", name, scope="col") for name in ("Action", "Asked by", "Ends")))
    rows = [
        tag(
            "tr",
            tag("td", tag("a", quoting.one_line(each.action), href=f"{PATH}/{each.id}")),
            tag("td", quoting.one_line(each.requester)),
            tag("td", _moment(each.expires_at, now)),
        )
        for each in found
    ]
    listed = tag("table", tag("thead", heads), tag("tbody", *rows)) if rows else tag("p", "Nothing waits.")
    return tag("main", tag("h1", "Approvals"), listed, _signed_in(caller), _ending())


def request(
    asked: Confirmation, caller: Caller, now: datetime, *, link: str | None, obstacle: str | None
) -> Markup:
    """The whole action, and the two buttons where the one who looks may decide."""
    return tag(
        "main",
        tag("h1", "Allow ", tag("bdi", quoting.one_line(asked.action)), "?"),
        tag("h2", "What will be done"),
        tag("pre", actions.render(asked.payload).text) if asked.payload else tag("p", ERASED),
        tag("h2", "Why"),
        tag("blockquote", actions.prose(asked.description)),
        tag("p", DECIDE_BY, class_="note"),
        tag("h2", "Who and when"),
        _facts(asked, now),
        _buttons(asked, link, obstacle),
        _signed_in(caller) if link is None else tag("p", f"This link is for {caller.id}.", class_="note"),
        _ending(),
    )


def refusal(title: str, detail: str) -> Markup:
    return tag("main", tag("h1", title), tag("p", detail), _ending())


def _facts(asked: Confirmation, now: datetime) -> Markup:
    facts: list[tuple[str, str]] = [("Asked by", quoting.one_line(asked.requester))]
    if asked.on_behalf_of:
        facts.append(("On behalf of", quoting.one_line(asked.on_behalf_of)))
    if asked.session_key:
        facts.append(("In", quoting.one_line(asked.session_key)))
    facts += [("Asked", _moment(asked.created_at, now)), ("Ends", _moment(asked.expires_at, now))]
    if asked.terms.quorum > 1:
        facts.append(("Approved by", f"{len(asked.approvals)} of {asked.terms.quorum}"))
    facts += [("Request", tag("code", asked.id)), ("Digest", tag("code", asked.digest))]
    return tag("dl", *(join(tag("dt", name), tag("dd", value)) for name, value in facts))


def _buttons(asked: Confirmation, link: str | None, obstacle: str | None) -> Markup:
    if asked.status is not Status.PENDING:
        return tag("p", tag("strong", f"It is {asked.status}: nothing more can be decided."))
    if obstacle is not None:
        return tag("p", tag("strong", obstacle))
    needed = asked.terms.needs_reason
    return tag(
        "section",
        tag("label", "Reason" if needed else "Reason (optional)", for_="reason"),
        void("input", id="reason", maxlength=str(MAX_TEXT_CHARACTERS), required=needed, autocomplete="off"),
        tag("button", "Approve", type="button", data_approves="true"),
        tag("button", "Deny", type="button", data_approves="false"),
        tag("noscript", tag("p", NO_SCRIPT)),
        data_decision=f"{PATH}/{asked.id}/decision",
        data_digest=asked.digest,
        data_link=link,
    )


def _signed_in(caller: Caller) -> Markup:
    return tag(
        "p",
        f"Signed in as {caller.id}. ",
        tag("a", "All that waits", href=PATH),
        " ",
        tag("button", "Sign out", type="button", id="sign-out", data_session=SESSION_END),
        class_="note",
    )


def _ending() -> Markup:
    """Where the script says what happened; read out as soon as it does."""
    return tag("p", id="outcome", role="status", aria_live="polite")


def _moment(moment: datetime, now: datetime) -> Markup:
    told = moment.astimezone(UTC)
    seconds = int((moment - now).total_seconds())
    distance = f"in {_span(seconds)}" if seconds > 0 else f"{_span(-seconds)} ago" if seconds else "now"
    return tag("time", f"{told:%Y-%m-%d %H:%M:%S} UTC ({distance})", datetime=told.isoformat())


def _span(seconds: int) -> str:
    minutes, rest = divmod(seconds, 60)
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"
