"""The table of operations. Everything that is served is a row, and is served, checked, documented and asked
for from that row."""

import inspect
import re
from collections.abc import Awaitable, Callable, Mapping
from enum import StrEnum
from http import HTTPStatus
from typing import Any, TypeVar

import msgspec

from frontdesk import errors
from frontdesk.model.visitors import LOOKS, Need

DEFAULT_BODY_BYTES = 1024 * 1024
PROOF_HEADER = "x-frontdesk-proof"
VISITOR_HEADER = "x-frontdesk-visitor"
"""For whom the page was made that sends a request, with signs and letters beyond ASCII as in addresses."""
KEY_HEADER = "Idempotency-Key"
LINK_FIELD = "t"
"""The field of a body that holds the token of a link."""
LOOKING = ("GET", "HEAD")
"""Methods that change nothing and uncover nothing."""

_SENTENCE = re.compile(r".+?[.?!](?=\s|$)")

Handle = TypeVar("Handle", bound=Callable[..., Any])


class Who(StrEnum):
    """Who may use an address."""

    EVERYBODY = "everybody"
    REQUESTER = "requester"
    """Whoever may ask for an action: an agent; in mode solo every program on this machine."""
    READER = "reader"
    """A requester or an approver."""
    APPROVER = "approver"
    VISITOR = "visitor"
    """Whoever signed in on the page, or sends a token of theirs."""
    OWNER = "owner"
    """Processes of our own user: the socket lets nobody else in."""


class BrowserOrigin(StrEnum):
    """What a browser may be on its way from."""

    ANYWHERE = "anywhere"
    OURSELVES = "ourselves"
    """No page of another origin; programs send none."""
    LINK = "link"
    """The address bar, or a link that leads here: nobody frames or fetches it."""
    SCRIPT = "script"
    """The script of our own page alone."""


class Proof(StrEnum):
    """What a visitor shows besides the cookie, wherever something is changed or uncovered. Browsers send the
    cookie to every port of the host: alone it only lets somebody look."""

    SESSION = "session"
    """What signing in gave to the page, as the header ``PROOF_HEADER``."""
    LINK = "link"
    """The same; or, instead of cookie and proof, a link's token in the body: it proves what it names."""
    SIGN_IN = "sign-in"
    """None: whoever shows a token here is given it."""


class Form(StrEnum):
    """The form of an answer, by its media type."""

    JSON = "application/json"
    PAGE = "text/html"
    """What answers shows refusals as pages, too: it has a method ``show_refusal``."""
    EVENTS = "text/event-stream"
    LINES = "application/x-ndjson"
    TEXT = "text/plain"
    STYLE = "text/css"
    CODE = "text/javascript"
    PICTURE = "image/svg+xml"
    PHOTO = "image/png"
    MANIFEST = "application/manifest+json"
    BYTES = "application/octet-stream"
    RASTER = "image/*"


class Nothing(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """No part of an address after a question mark, and no header of ours."""


class Operation(msgspec.Struct, frozen=True, kw_only=True):
    """A row. Its function is called with what answers the table and an ``endpoints.HttpCall``; it gives a
    record, an async generator, None, or a whole Response."""

    method: str
    path: str
    """What is in braces is a name of ours, and in ``HttpCall.params``."""
    handle: Callable[..., Awaitable[Any]]
    summary: str
    """What it does, in one sentence."""
    description: str = ""
    """What else there is to say of it."""
    who: Who = Who.EVERYBODY
    need: Need | None = None
    """What a visitor must be able to do; None where nobody has to be in, and the page tells them apart."""
    origin: BrowserOrigin = BrowserOrigin.OURSELVES
    proof: Proof = Proof.SESSION
    """Of a visitor, unless the method is one that looks."""
    form: Form = Form.JSON
    answers: Mapping[HTTPStatus, tuple[Any, ...]]
    """What comes back, by status; the first is meant where the function does not say."""
    goes_on: Callable[[Any], bool] | None = None
    """Whether an answer tells of what is not over yet: its status is 202 then."""
    problems: tuple[int | type[errors.FrontdeskError], ...] = ()
    """Errors, or statuses of them, besides those that every address has."""
    query: type[msgspec.Struct] = Nothing
    headers: type[msgspec.Struct] = Nothing
    body: type[msgspec.Struct] | None = None
    needs_body: bool = False
    max_body_bytes: int = DEFAULT_BODY_BYTES
    uploads: bool = False
    """Whether the body is a file, whose bytes the function itself reads from ``HttpCall.upload``."""
    keyed: bool = False
    """Whether it can be sent again with the same `KEY_HEADER`, unless it only looks."""
    once_by_key: bool = False
    """Whether the function itself does it once for each key, so that it can be called again after a crash."""
    keeps_answer: bool = True
    """Whether the answer is kept for who sends it again; not where it holds a secret."""
    waits: bool = False
    """Whether the answer may take long because somebody wants that: it is given up when they leave."""

    @property
    def name(self) -> str:
        return self.handle.__name__

    @property
    def needs_proof(self) -> bool:
        """Whether a cookie alone is not enough."""
        acts = self.method not in LOOKING or (self.need is not None and self.need not in LOOKS)
        return self.who is Who.VISITOR and acts and self.proof is not Proof.SIGN_IN

    @property
    def is_keyed(self) -> bool:
        """Whether it takes an idempotency key; what is answered piece by piece changes nothing."""
        return self.keyed and self.method not in LOOKING and self.form is Form.JSON

    @property
    def params(self) -> tuple[str, ...]:
        """What the path names."""
        return tuple(re.findall(r"{(\w+)}", self.path))


class Table(list[Operation]):
    """Rows in the order in which they were added; an address that fits several is the first one's."""

    def __init__(self, **columns: Any) -> None:
        """``columns`` hold for every row that does not say otherwise."""
        super().__init__()
        self._columns = columns

    def add(self, method: str, path: str, gives: Any = (), **columns: Any) -> Callable[[Handle], Handle]:
        """Add a row for the function that follows; the first sentence of its docstring is the summary.

        ``gives`` is the type of the answer, several of them, or these by status.
        """

        def add_row(handle: Handle) -> Handle:
            summary, description = _told(inspect.cleandoc(handle.__doc__ or ""))
            by_status = gives if isinstance(gives, Mapping) else {HTTPStatus.OK: gives}
            row = {"method": method, "path": path, "handle": handle}
            row |= {"summary": summary, "description": description}
            row["answers"] = {HTTPStatus(status): _several(kinds) for status, kinds in by_status.items()}
            self.append(Operation(**self._columns | row | columns))
            return handle

        return add_row


def _told(text: str) -> tuple[str, str]:
    """The first sentence, without its full stop, and the paragraphs of the rest."""
    paragraphs = [" ".join(each.split()) for each in text.split("\n\n")]
    first = _SENTENCE.match(paragraphs[0])
    summary = first[0] if first else paragraphs[0]
    rest = [paragraphs[0].removeprefix(summary).strip(), *paragraphs[1:]]
    return summary.rstrip("."), "\n\n".join(filter(None, rest))


def _several(kinds: Any) -> tuple[Any, ...]:
    return kinds if isinstance(kinds, tuple) else (kinds,)
