"""What the pages for approvers look like."""

from collections.abc import Sequence
from datetime import UTC, datetime

from frontdesk.formats import cards, links, quoting
from frontdesk.formats.cards import Card
from frontdesk.formats.targets import Typed
from frontdesk.model.confirmations import (
    GRANT_SECONDS,
    MAX_TEXT_CHARACTERS,
    Caller,
    Confirmation,
    Status,
)
from frontdesk.web.confirmations.markup import Markup, join, tag, void
from frontdesk.web.confirmations.sessions import PATH

NAME_CHARACTERS = 60
SIGN_IN = "Sign in to approvals"
REVEALED = "Nothing is hidden any more. The log says that you looked."
ALLOW = "Allow this?"
PROVEN = "proven"
"""How a page says that it is of a session, which takes its proof."""
UNPROVEN = "You can look, and not decide: this browser does not have what signing in gave it. Sign in again."
LOOK_FIRST = "See what is hidden before you approve, with the button above."
OUTCOMES = {
    Status.APPROVED: f"Approved. It can be carried out once, within {GRANT_SECONDS} seconds.",
    Status.DENIED: "Denied. It will not be carried out.",
    Status.EXPIRED: "It was too late: nobody decided in time.",
}
STANDINGS = {
    Status.APPROVED: "It is approved",
    Status.DENIED: "It is denied",
    Status.EXPIRED: "It has expired: nobody decided in time",
}


def list_title(found: Sequence[Confirmation]) -> str:
    return f"({len(found)}) Approvals" if found else "Approvals"


def title(asked: Confirmation) -> str:
    return f"{ALLOW if asked.status is Status.PENDING else asked.status} {_name(asked.action)}"


def outcome(asked: Confirmation) -> str:
    """What a decision has led to."""
    if asked.status is Status.PENDING:
        return f"Your yes counts: {_votes(asked)} so far."
    return OUTCOMES[asked.status]


def sign_in(note: str | None = None) -> Markup:
    noted = tag("p", note, class_="notice") if note else Markup()
    return _page(
        _top(), tag("h1", "Sign in"), noted, _signing_in(), _no_script("Signing in"), class_="narrow"
    )


def _signing_in() -> Markup:
    where = "It was shown when the service first started, and is in a file that only its owner can read."
    return tag(
        "form",
        tag("label", "Your approver’s token", for_="token"),
        void("input", id="token", type="password", autocomplete="current-password", required=True),
        tag("p", where, class_="note"),
        tag("button", "Sign in", class_="main"),
        id="sign-in",
        data_session=f"{PATH}/session",
    )


def _signing_in_again(link: str | None = None) -> Markup:
    """Shown instead of buttons where the browser has the cookie and has lost the proof; a link needs none."""
    if link is not None:
        return Markup()
    shown = tag("div", tag("p", UNPROVEN, class_="notice"), _signing_in(), id="unproven")
    return tag("template", shown, id="sign-in-again")


def waiting(found: Sequence[Confirmation], caller: Caller, now: datetime) -> Markup:
    """Everything that waits, newest first."""
    more = tag("p", "What agents ask for appears here by itself.", class_="note")
    nothing = tag("div", tag("p", "Nothing waits."), more, class_="empty")
    listed = tag("ul", *(_card(each, now) for each in found), class_="cards") if found else nothing
    up_to_date = tag("span", id="connection", role="status")  # which the script fills in
    return _page(
        _top(caller),
        tag("div", tag("h1", "Approvals"), up_to_date, class_="heading"),
        tag("div", listed, id="waiting", data_live=True, aria_live="polite"),
        _signing_in_again(),
        data_session=PROVEN,
        data_events=f"{PATH}/events",
        data_state=" ".join(f"{each.id}:{len(each.approvals)}" for each in found),
        data_now=now.isoformat(),
    )


def request(
    asked: Confirmation, caller: Caller, now: datetime, *, link: str | None, obstacle: str | None
) -> Markup:
    """The card of the request, and below it the two buttons where the one who looks may decide."""
    pending = asked.status is Status.PENDING
    through = f"?{links.PARAMETER}={link}" if link else ""
    about = tag("h2", "What will be done" if pending else "What it was about")
    card = card_of(asked)
    return _page(
        _top(caller, link),
        tag("div", _heading(asked, now), id="standing", data_live=True),
        tag("h2", "Who and when"),
        tag("div", _facts(asked, now), id="facts", data_live=True),
        _words(card) if card else Markup(),
        _unusual(card, asked, link, obstacle) if card else Markup(),
        tag("div", about, id="about", data_live=True),
        _arguments(card) if card else _gone(asked),
        _closing(card) if card else Markup(),
        tag("div", _decision(asked, card, link, obstacle), id="decision", data_live=True),
        _signing_in_again(link),
        data_session=None if link else PROVEN,
        data_events=f"{PATH}/{asked.id}/events{through}" if pending else None,
        data_state=f"{asked.status} {len(asked.approvals)} {obstacle}",
        data_now=now.isoformat(),
    )


def card_of(asked: Confirmation) -> Card | None:
    """What the page shows of a request; None when what it was about was erased, or never kept."""
    if asked.payload is None:
        return None
    return cards.make(asked.payload, asked.description, asked.requester)


def refusal(title: str, detail: str) -> Markup:
    back = tag("p", tag("a", "All that waits", href=PATH))
    return _page(_top(), tag("h1", title), tag("p", detail), back, class_="narrow")


def _page(top: Markup, *children: Markup, **attributes: str | None) -> Markup:
    # Where the script says what happened; read out as soon as it does.
    ending = tag("p", id="outcome", role="status", aria_live="polite")
    return join(top, tag("main", *children, ending, **attributes))


def _top(caller: Caller | None = None, link: str | None = None) -> Markup:
    """Where one is, and as whom."""
    place = tag("a", "frontdesk", tag("span", " approvals"), href=PATH, class_="place")
    if caller is None:
        return tag("header", place)
    if link is not None:
        return tag("header", place, tag("p", "This link is for ", tag("bdi", caller.id), "."))
    leave = tag(
        "button",
        "Sign out",
        type="button",
        id="sign-out",
        class_="proven-only",
        data_session=f"{PATH}/session/end",
    )
    return tag("header", place, tag("p", "Signed in as ", tag("bdi", caller.id)), leave)


def _card(asked: Confirmation, now: datetime) -> Markup:
    votes = f" · {_votes(asked)}" if asked.terms.quorum > 1 else ""
    return tag(
        "li",
        tag(
            "a",
            tag("strong", _said(asked.action)),
            _risk(asked),
            tag("span", "Asked by the agent: ", _said(asked.requester), votes, class_="note"),
            tag("span", "ends ", _distance(asked.expires_at, now), class_="ends"),
            href=f"{PATH}/{asked.id}",
        ),
    )


def _heading(asked: Confirmation, now: datetime) -> Markup:
    if asked.status is Status.PENDING:
        left = tag("p", "Ends ", _distance(asked.expires_at, now), class_="note")
        return join(tag("h1", ALLOW), _risk(asked), left)
    return join(tag("h1", "Decided"), _risk(asked), _standing(asked, now))


def _standing(asked: Confirmation, now: datetime) -> Markup:
    """What was decided, by whom and why."""
    by = asked.resolved_by if asked.status is not Status.EXPIRED else None
    named = f" ({quoting.one_line(asked.resolved_as)})" if asked.resolved_as else ""
    withdrawn = "It was withdrawn: nobody waits for it any more"
    return tag(
        "div",
        tag("strong", withdrawn if asked.is_withdrawn else STANDINGS[asked.status]),
        join(" by ", tag("bdi", f"{by}{named}")) if by else Markup(),
        tag("p", "Reason: ", tag("q", quoting.one_line(asked.reason))) if asked.reason else Markup(),
        tag("p", _use(asked, now), class_="note"),
        class_=f"standing {asked.status}",
    )


def _use(asked: Confirmation, now: datetime) -> str:
    """What became of it, or still can."""
    if asked.redeemed_at is not None:
        return f"It was used at {_told(asked.redeemed_at)}."
    if asked.grant_until is None:
        return "It will not be carried out."
    if now < asked.grant_until:
        return f"It can be used once, until {_told(asked.grant_until)}."
    return "It was not used in time."


def _gone(asked: Confirmation) -> Markup:
    at_once = "It was denied at once, so what it was about was not kept."
    why = at_once if asked.was_denied_at_once else "What it was about was erased."
    return tag("p", f"{why} Its digest is above.", class_="notice")


def _words(card: Card) -> Markup:
    """What the agent says; nothing where that was not kept, or erased."""
    if not card.words:
        return Markup()
    count = len(card.more_words)
    more = tag("details", tag("summary", f"{count} more lines"), _quoted(card.more_words))
    return join(tag("h2", cards.AGENTS_WORDS), _quoted(card.words), more if count else Markup())


def _quoted(words: Sequence[str]) -> Markup:
    return tag("blockquote", *(tag("p", tag("q", line, class_="said")) for line in words))


def _unusual(card: Card, asked: Confirmation, link: str | None, obstacle: str | None) -> Markup:
    """What is not as usual, and the button with which whoever may decide sees what is hidden."""
    odd = [tag("li", f"{each.sign} {each.text}") for each in card.unusual]
    listed = join(tag("h2", cards.UNUSUAL), tag("ul", *odd, class_="odd")) if odd else Markup()
    if not card.note:
        return listed
    note, path = card.note, f"{PATH}/{asked.id}/reveal"
    button = tag(
        "button",
        "Show hidden values",
        type="button",
        class_="proven-only",
        data_reveal=path,
        data_link=link,
    )
    if obstacle is not None:
        note, button = f"{note} Those who may decide can see them.", Markup()
    elif asked.status is Status.PENDING:
        note = f"{note} See them before you decide; the log says that you did."
    return join(listed, tag("div", tag("p", note), button, id="hidden", class_="notice hidden"))


def _arguments(card: Card) -> Markup:
    """Line by line: the rest of one that is too long for the screen stands under it."""
    lines = (tag("p", line.text, class_=f"d{line.depth}") for line in card.lines)
    return tag("div", *lines, id="action", class_="lines")


def _closing(card: Card) -> Markup:
    """The action and its target, right above the buttons."""
    pairs = (join(tag("dt", each.name), tag("dd", tag("code", each.shown))) for each in card.matters)
    return tag("dl", *pairs, id="closing")


def _said(words: str) -> Markup:
    """A name that the agent has chosen."""
    return tag("q", quoting.one_line(words), class_="said")


def _name(words: str) -> str:
    """The same where there is no markup."""
    return quoting.quote_within(words, NAME_CHARACTERS)


def _facts(asked: Confirmation, now: datetime) -> Markup:
    ended = asked.resolved_at
    facts = {
        "Asked by the agent": _said(asked.requester),
        "On behalf of": quoting.one_line(asked.on_behalf_of or ""),
        "In": _said(asked.session_key) if asked.session_key else "",
        "Asked": _moment(asked.created_at, now),
        "Decided" if ended else "Ends": _moment(ended or asked.expires_at, now),
        "Approved by": _votes(asked) if asked.terms.quorum > 1 else "",
        "Request": tag("code", asked.id),
        "Digest": tag("code", asked.digest),
    }
    return tag("dl", *(join(tag("dt", name), tag("dd", each)) for name, each in facts.items() if each))


def _decision(asked: Confirmation, card: Card | None, link: str | None, obstacle: str | None) -> Markup:
    if asked.status is not Status.PENDING:
        return tag("p", "Nothing more can be decided.", class_="note last")
    if obstacle is not None:
        return tag("p", obstacle, class_="notice")
    needed = asked.terms.needs_reason
    hidden, typed = bool(card and card.hidden), card.typed if card else None
    return tag(
        "section",
        tag("p", LOOK_FIRST, id="look", class_="note") if hidden else Markup(),
        _typing(typed) if typed else Markup(),
        tag("label", "Reason" if needed else "Reason (optional)", for_="reason"),
        void("input", id="reason", maxlength=str(MAX_TEXT_CHARACTERS), required=needed, autocomplete="off"),
        tag(
            "div",
            tag("button", "Deny", type="button", data_approves="false"),
            tag("button", "Approve", type="button", data_approves="true", disabled=hidden or bool(typed)),
            class_="choice",
        ),
        _no_script("Deciding"),
        class_="proven-only",
        aria_label="Decide",
        data_decision=f"{PATH}/{asked.id}/decision",
        data_digest=asked.digest,
        data_link=link,
    )


def _typing(typed: Typed) -> Markup:
    field = void("input", id="target", autocomplete="off", autocapitalize="none", spellcheck="false")
    return join(tag("label", f"To approve, type {typed.what}", for_="target"), field)


def _risk(asked: Confirmation) -> Markup:
    card = card_of(asked)
    return tag("span", "high risk", class_="risk") if card and card.is_high_risk else Markup()


def _votes(asked: Confirmation) -> str:
    return f"{len(asked.approvals)} of {asked.terms.quorum}"


def _no_script(what: str) -> Markup:
    """Shown unless the script runs."""
    return tag("p", f"{what} takes JavaScript, which does not run here.", class_="notice no-script")


def _moment(moment: datetime, now: datetime) -> Markup:
    return join(f"{_told(moment)} (", _distance(moment, now), ")")


def _distance(moment: datetime, now: datetime) -> Markup:
    """How far away it is; the script lets it run."""
    seconds = int((moment - now).total_seconds())
    distance = f"in {_span(seconds)}" if seconds > 0 else f"{_span(-seconds)} ago" if seconds else "now"
    return tag("time", distance, datetime=moment.astimezone(UTC).isoformat(), title=_told(moment))


def _told(moment: datetime) -> str:
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"


def _span(seconds: int) -> str:
    minutes, rest = divmod(seconds, 60)
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"
