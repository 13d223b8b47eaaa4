"""``python -m tests.api_reference > docs/http.md``: every address of the HTTP API, as its document says."""

import sys
from collections.abc import Collection, Iterator

from frontdesk import errors
from frontdesk.model.feed import FeedKind
from frontdesk.web import problems
from frontdesk.web.reference import ApiEntry, ApiGroup, FieldEntry
from frontdesk.web.site import reference_page
from frontdesk.web.told import EventData

HEAD = """# HTTP API

Everything that the [pages](site.md) show and do, as JSON. This page is made by
`python -m tests.api_reference > docs/http.md` from the OpenAPI document that a gateway serves at
`/openapi.json`; its page *HTTP API* shows the same. Chat completions and responses have
[a page of their own](api.md), confirmations [theirs](confirmations.md).

A program sends a [token](access.md) with each request: `Authorization: Bearer TOKEN`. What it sees and may do
follows from the token's role. Another's rows are answered like rows that do not exist: 404. To try it:

```text
export TOKEN=$(frontdesk token add try-out --role administrator --days 1) URL=http://127.0.0.1:8642
curl -s -H "Authorization: Bearer $TOKEN" "$URL/api/v1/sessions?limit=3"
curl -s -H "Authorization: Bearer $TOKEN" -H "Content-Type: application/json" -H "Idempotency-Key: first" \\
     -d '{{"text": "Hello"}}' "$URL/api/v1/chats"
curl -sN -H "Authorization: Bearer $TOKEN" "$URL/api/v1/events?about=turn,delivery"
```

[Talking](talking.md) says what becomes of such a message. [Behind a proxy](access.md#behind-a-proxy) the
address is that of `server.url`, with its path.

- **A file** is brought first, its bytes as the body of `POST /api/v1/files?name=NAME`, not in a form; the
  message names it by its id, in `files`. What is not sent within a day is forgotten.
- **Lists** come in pages: `items`, and `next`, which is sent as `after` to get the page after it. Of messages
  the first page has the newest; inside a page the oldest come first. Their `next` is sent as `before`, and
  `newer` as `after`. Like the id of an event it is a text to be sent back as it is, by whom it was given to.
  `limit` is 1 to 200; less gives 1, more 200.
- **What changes something** takes the header `Idempotency-Key`, but for bringing a file: the same key with
  the same request is done once, and answered the same, for a day; the latest 5,000 keys of a sender are
  known. An answer of more than 4 KiB is not kept: the second one is `answer_not_kept`.
- **What is refused** is an `application/problem+json` document: `code` is the problem's name for programs
  ([all of them](#problems)), `type` a URN that ends with it, `detail` a text for people, which is in
  `error`, too; `title` and `status` are those of HTTP.
- **A page's requests** come with a cookie, and with the proof of signing in where they change something. They
  may name in `X-Frontdesk-Visitor` for whom they are: 409, `wrong_visitor`, where somebody else has signed in
  since.
- **Events** are server-sent, with ids: `Last-Event-ID` goes on where a connection was cut. `event: reset`
  says that this is not possible, and that what was read before is to be read again. The others are called
  {kinds}. Their data is an object with `at` (seconds since 1970) and those of {named} that it concerns: never
  more than names, so ask for the rest. `about` takes ids of sessions, turns and requests, session keys,
  owners and kinds, with commas between them: only what concerns one of them comes. A message and its answer
  are told of by `turn` and `delivery`; `transcript` tells of rows in the middle of a turn, and of those of no
  turn, and need not tell of these. `event: here`, with none of these, comes at once and then every
  25 seconds while nothing else does: a connection on which it does not is cut. A `node` without an id tells
  that this node is in another condition.
"""

PROBLEMS = """## Problems

`code` is one of these. Names stay; new ones may be added, so treat one that you do not know by its status.
Every address may answer with {everywhere}.
What else one may answer with stands there.

| code | status | means |
|---|---|---|"""

GENERAL = {
    "bad_request": "the request cannot be used; `detail` says what",
    "unauthorized": "no valid token came along, and nobody is signed in",
    "forbidden": "a browser is on its way from another site",
    "not_found": "there is no such address, or nothing of that name",
    "method_not_allowed": "the address is there, with another method; see `Allow`",
    "request_timeout": "the body did not come in time",
    "conflict": "it does not fit the state of things; `detail` says why",
    "gone": "it was there, and is no more",
    "body_too_large": "the body is too long",
    "unsupported_media_type": "the body must be sent as `application/json`",
    "precondition_failed": "what was shown is not what is there",
    "unprocessable": "it contradicts what was sent before",
    "misdirected_request": "the server does not go by that host name",
    "too_many_requests": "too many wrong tokens, or requests at once; see `Retry-After`",
    "header_too_large": "the header is too long, or has too many fields",
    "internal_error": "something went wrong here; the log has the details",
    "unavailable": "it is not ready; see `Retry-After`",
    "no_room": "there is too little room on the disk",
}


def render() -> str:
    groups = reference_page.groups()
    entries = [set(_codes(entry)) for group in groups for entry in group.entries]
    common = set.intersection(*entries)
    kinds = ", ".join(f"`{kind}`" for kind in FeedKind)
    named = ", ".join(f"`{name}`" for name in EventData.__struct_fields__[1:])
    return "\n".join([HEAD.format(kinds=kinds, named=named), *_groups(groups, common), *_problems(common)])


def _codes(entry: ApiEntry) -> Iterator[str]:
    for problem in entry.problems:
        yield from problem.codes


def _problems(common: Collection[str]) -> Iterator[str]:
    yield PROBLEMS.format(everywhere=", ".join(f"`{code}`" for code in sorted(common)))
    rows = [(code, str(status), GENERAL[code]) for status, code in problems.GENERAL.items()]
    for kind, status in problems.KINDS.items():
        told = f"[{kind.__name__}](errors.md#{kind.__name__.lower()})"
        also = ", 410" if kind is errors.GrantUnusable else ""
        rows.append((problems.code_of(kind), f"{int(status)}{also}", told))
    yield from (f"| `{code}` | {status} | {told} |" for code, status, told in sorted(rows))
    yield ""


def _groups(groups: list[ApiGroup], common: Collection[str]) -> Iterator[str]:
    for group in groups:
        yield f"## {group.name.capitalize()}\n"
        for entry in group.entries:
            yield from _entry(entry, common)


def _entry(entry: ApiEntry, common: Collection[str]) -> Iterator[str]:
    yield f"### `{entry.method} {entry.path}`\n"
    roles = f" For: {', '.join(entry.roles)}." if entry.roles else ""
    yield f"{entry.summary}.{roles}\n"
    if entry.description:
        yield f"{entry.description}\n"
    sent = {"In the address": entry.parameters, "In the header": entry.headers, "Sent": entry.body}
    for title, fields in sent.items():
        if fields:
            yield from _table(title, fields, is_sent=True)
    if entry.answer:
        yield from _table(f"Comes back ({entry.gives})", entry.answer, is_sent=False)
    elif entry.gives:
        yield f"Comes back: {entry.gives}.\n"
    own = [f"`{code}`" for code in _codes(entry) if code not in common]
    if own:
        yield f"May be refused with {', '.join(own)}.\n"


def _table(title: str, fields: tuple[FieldEntry, ...], *, is_sent: bool) -> Iterator[str]:
    yield f"| {title} | | |\n|---|---|---|"
    for field in fields:
        about = field.about.replace("|", "/")
        said = f"required{f': {about}' if about else ''}" if field.is_required and is_sent else about
        yield f"| `{field.name}` | {field.kind.replace('|', '/')} | {said} |"
    yield ""


if __name__ == "__main__":
    sys.stdout.write(render())
