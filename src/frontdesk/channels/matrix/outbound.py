"""What goes out: a delivery as the content of an event."""

import json
from collections.abc import Iterator
from typing import Any

from frontdesk.formats.markdown import page_html, plaintext
from frontdesk.model.chats import StoredFile
from frontdesk.model.deliveries import Delivery, DeliveryKind
from frontdesk.model.sources import SessionSource, readable

Content = dict[str, Any]

EVENT_BYTES = 60_000
"""An event may have 64 KiB with everything around it."""
SHOWN_CHARACTERS = 500
"""What those see of a changed message whose program knows no changes."""
HTML = "org.matrix.custom.html"


def message(delivery: Delivery, *, is_encrypted: bool = False) -> Content:
    """The event, in the richest form that fits; one that changes another says what it becomes."""
    forms = _forms(delivery)
    said = next(forms)
    while _size(said, is_encrypted) > EVENT_BYTES and (simpler := next(forms, None)):
        said = simpler
    return said


def _forms(delivery: Delivery) -> Iterator[Content]:
    """From the richest to the shortest."""
    for said in _texts(delivery):
        if delivery.draft:
            shown = {
                "msgtype": said["msgtype"],
                "body": f"* {said['body'][:SHOWN_CHARACTERS]}",
                "m.mentions": {},
            }
            changed = {"rel_type": "m.replace", "event_id": delivery.draft}
            yield shown | {"m.new_content": said, "m.relates_to": changed}
        else:
            yield said | relates_to(delivery.to)


def _texts(delivery: Delivery) -> Iterator[Content]:
    """Programs say what nobody should answer in a way of its own. Nobody is called by a name in the text."""
    kind = "m.notice" if delivery.kind is DeliveryKind.NOTICE else "m.text"
    text = readable(delivery.text)
    said = {"msgtype": kind, "body": text, "m.mentions": {}}
    if delivery.is_markdown:
        plain = said | {"body": plaintext.render(text)}
        yield plain | {"format": HTML, "formatted_body": page_html.render(text)}
        yield plain
    yield said


def _size(content: Content, is_encrypted: bool) -> int:
    """How long an event gets: what is encrypted is written in ASCII, and then in base64."""
    if is_encrypted:
        return len(json.dumps(content)) * 4 // 3
    return len(json.dumps(content, ensure_ascii=False).encode())


def reply(message_id: str) -> Content:
    """What makes a message an answer to another."""
    return {"m.relates_to": {"m.in_reply_to": {"event_id": message_id}}}


def relates_to(to: SessionSource) -> Content:
    """Where it stands: in its thread; in a group, as an answer to its message."""
    answered = {"m.in_reply_to": {"event_id": to.message_id}} if to.message_id else {}
    if to.thread_id:
        thread: Content = {"rel_type": "m.thread", "event_id": to.thread_id}
        return {"m.relates_to": thread | (answered | {"is_falling_back": True} if answered else {})}
    return {"m.relates_to": answered} if answered and to.others_read else {}


def file_message(file: StoredFile, place: Content) -> Content:
    """A file, by where it is."""
    shown = file.kind.partition("/")[0]
    form = f"m.{shown}" if shown in ("image", "audio", "video") else "m.file"
    name, about = readable(file.name), {"mimetype": file.kind, "size": file.size}
    return {"msgtype": form, "body": name, "filename": name, "info": about, "m.mentions": {}} | place


def reaction(message_id: str, sign: str) -> Content:
    return {"m.relates_to": {"rel_type": "m.annotation", "event_id": message_id, "key": sign}}
