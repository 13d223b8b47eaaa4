"""What goes out: a delivery as the content of an event."""

from typing import Any

from frontdesk.formats.markdown import page_html, plaintext
from frontdesk.model.chats import StoredFile
from frontdesk.model.deliveries import Delivery, DeliveryKind
from frontdesk.model.sources import SessionSource, readable

Content = dict[str, Any]

HTML = "org.matrix.custom.html"


def message(delivery: Delivery) -> Content:
    """The event; one that changes another says what it becomes."""
    said = _text(delivery)
    if delivery.draft:
        changed = dict(said) | {"body": f"* {said['body']}", "m.new_content": said}
        if "formatted_body" in said:
            changed["formatted_body"] = f"* {said['formatted_body']}"
        return changed | {"m.relates_to": {"rel_type": "m.replace", "event_id": delivery.draft}}
    return said | relates_to(delivery.to)


def _text(delivery: Delivery) -> Content:
    """Programs say what nobody should answer in a way of its own. Nobody is called by a name in the text."""
    kind = "m.notice" if delivery.kind is DeliveryKind.NOTICE else "m.text"
    text = readable(delivery.text)
    if not delivery.is_markdown:
        return {"msgtype": kind, "body": text, "m.mentions": {}}
    formatted = {"format": HTML, "formatted_body": page_html.render(text)}
    return {"msgtype": kind, "body": plaintext.render(text), "m.mentions": {}} | formatted


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
