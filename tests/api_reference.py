"""``python -m tests.api_reference > docs/http.md``: every address of the HTTP API, as its document says."""

import sys
from collections.abc import Iterator

from frontdesk.web.reference import ApiEntry, ApiGroup, FieldEntry
from frontdesk.web.site import reference_page

HEAD = """# HTTP API

Everything that the [pages](site.md) show and do, as JSON. This page is made by
`python -m tests.api_reference > docs/http.md` from the OpenAPI document that a gateway serves at
`/openapi.json`; its page *HTTP API* shows the same. Chat completions and responses have
[a page of their own](api.md), confirmations [theirs](confirmations.md).

A program sends a [token](access.md) with each request: `Authorization: Bearer TOKEN`. What it sees and may do
follows from the token's role. Another's rows are answered like rows that do not exist: 404.

- **Lists** come in pages: `items`, and `next`, which is sent as `after` to get the page after it.
- **What changes something** takes the header `Idempotency-Key`: the same key with the same request is done
  once, and answered the same.
- **What is refused** is an `application/problem+json` document with `title`, `status` and `detail`.
- **Events** are server-sent, with ids: `Last-Event-ID` goes on where a connection was cut. `event: reset`
  says that this is not possible, and that what was read before is to be read again.
"""


def render() -> str:
    return "\n".join([HEAD, *_groups(reference_page.groups())])


def _groups(groups: list[ApiGroup]) -> Iterator[str]:
    for group in groups:
        yield f"## {group.name.capitalize()}\n"
        for entry in group.entries:
            yield from _entry(entry)


def _entry(entry: ApiEntry) -> Iterator[str]:
    yield f"### `{entry.method} {entry.path}`\n"
    roles = f" For: {', '.join(entry.roles)}." if entry.roles else ""
    yield f"{entry.summary}.{roles}\n"
    for title, fields in (("In the address", entry.parameters), ("Sent", entry.body)):
        if fields:
            yield from _table(title, fields)
    if entry.answer:
        yield from _table(f"Comes back ({entry.gives})", entry.answer)
    elif entry.gives:
        yield f"Comes back: {entry.gives}.\n"


def _table(title: str, fields: tuple[FieldEntry, ...]) -> Iterator[str]:
    yield f"| {title} | | |\n|---|---|---|"
    for field in fields:
        said = field.about.replace("|", "/") or ("required" if field.is_required else "")
        yield f"| `{field.name}` | {field.kind.replace('|', '/')} | {said} |"
    yield ""


if __name__ == "__main__":
    sys.stdout.write(render())
