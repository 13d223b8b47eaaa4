"""Files as an agent is shown them: images and texts as parts of the message, others by where they lie."""

import base64
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from msgspec.structs import asdict

from frontdesk.contracts.agents import Abilities
from frontdesk.contracts.files import Shelf
from frontdesk.flow.files import described
from frontdesk.formats import media, quoting
from frontdesk.model.chats import StoredFile
from frontdesk.model.files import KeptFile
from frontdesk.model.messages import Plain, Role

PART = "stored_file"
"""A part of a message that stands for a file of ours; nobody outside can bring one."""
SHOWN_IMAGES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
MOST_IMAGES = 10
MOST_IMAGE_BYTES = 8 * 1024 * 1024
MOST_TEXT_BYTES = 32 * 1024
"""Of one file; a longer one is cut."""
MOST_TEXTS_BYTES = 256 * 1024
HEARD = "[What is said in it, as a program heard it:]\n{said}"
GONE = "no longer kept"
UNREADABLE = "you cannot look into it"
INSIDE = "[It begins so:]\n{text}\n[{end}.]"

SAID = ("role", "content", "name", "tool_calls", "tool_call_id")

Content = str | list[dict[str, Any]]


def with_files(content: Content, kept: Sequence[KeptFile]) -> Content:
    """A message with what became of its files."""
    parts = [{"type": "text", "text": content}] if isinstance(content, str) else list(content)
    parts = [part for part in parts if part.get("type") != "text" or str(part.get("text")).strip()]
    for each in kept:
        parts.append(_part(each))
        if each.said:
            parts.append({"type": "text", "text": HEARD.format(said=each.said)})
    return parts


def unfetched(content: Content, turn_files: Sequence[Any]) -> Content:
    """A message that is not answered, with the names of its files."""
    names = [f"[File {quoting.quote(each.name or 'without a name')}]" for each in turn_files]
    if isinstance(content, list):
        return [*content, *({"type": "text", "text": name} for name in names)]
    return "\n".join(filter(None, (content, *names)))


def _part(kept: KeptFile) -> dict[str, Any]:
    words, stored = described(kept), kept.stored
    if stored is None:
        return {"type": "text", "text": f"[{words}: it could not be had, {_why(kept)}]"}
    note = f"; careful: {_why(kept)}" if kept.why else ""
    facts = {name: value for name, value in asdict(stored).items() if name != "path"}
    return {"type": PART, "text": f"[{words}{note}]", PART: facts}


def _why(kept: KeptFile) -> str:
    return quoting.one_line(kept.why or "", quoting.MAX_CHARACTERS)


def brings_ours(content: object) -> bool:
    """Whether parts of a message pose as files of ours."""
    return isinstance(content, list) and any(
        isinstance(part, Mapping) and (part.get("type") == PART or PART in part) for part in content
    )


def brought(row: Plain) -> Plain:
    """A row as whoever brings it along to another conversation may say it: without what only we say, files
    by their names."""
    kept = {name: row[name] for name in SAID if row.get(name) is not None}
    if isinstance(kept.get("content"), list):
        kept["content"] = [
            _text(str(part.get("text"))) if brings_ours([part]) else part for part in kept["content"]
        ]
    return kept


async def show(
    shelf: Shelf | None, abilities: Abilities, rows: Sequence[Plain], message: Plain
) -> tuple[list[Plain], Plain]:
    """The rows as an agent is given them, and the message that it is to answer, which is one of them."""
    exhibits = Exhibits(shelf, abilities)
    shown = [await exhibits.row(each) for each in reversed(rows)][::-1]
    same = [row for row, was in zip(shown, rows, strict=True) if was == message]
    return shown, same[-1] if same else await exhibits.row(message)


class Exhibits:
    """Makes a row of a transcript into what an agent is given, the newest first: as far as there is room. The
    same rows give the same, unless a file is gone."""

    def __init__(self, shelf: Shelf | None, abilities: Abilities) -> None:
        self._shelf = shelf
        self._abilities = abilities
        self._images = MOST_IMAGES
        self._image_bytes = MOST_IMAGE_BYTES
        self._text_bytes = MOST_TEXTS_BYTES

    async def row(self, row: Plain) -> Plain:
        content = row.get("content")
        if row.get("role") != Role.USER or not brings_ours(content):
            return row
        parts = [piece for part in content or () for piece in await self._shown(part)]
        return row | {"content": parts}

    async def _shown(self, part: Plain) -> list[Plain]:
        if part.get("type") != PART:
            return [part]
        text = str(part.get("text")).removesuffix("]")
        try:
            file = msgspec.convert(part.get(PART), StoredFile)
        except msgspec.ValidationError:  # whoever else wrote it: there is no such file here
            return [_text(f"{text}; {GONE}]")]
        path = self._shelf.find(file.digest) if self._shelf else None
        if self._shelf is None or path is None:
            return [_text(f"{text}; {GONE}]")]
        where = f"; it lies at {quoting.quote(str(path))}" if self._abilities.paths else ""
        inside = await self._inside(self._shelf, file)
        if not where and not inside:
            where = f"; {UNREADABLE}"
        return [_text(f"{text}{where}]"), *inside]

    async def _inside(self, shelf: Shelf, file: StoredFile) -> list[Plain]:
        """What can be shown of it."""
        if file.kind in SHOWN_IMAGES and self._abilities.images and self._has_room_for(file):
            data = await shelf.read(file.digest, file.size)
            if data:
                url = f"data:{file.kind};base64,{base64.b64encode(data).decode()}"
                return [{"type": "image_url", "image_url": {"url": url}}]
        if media.is_written(file.kind) and self._text_bytes > 0:
            data = await shelf.read(file.digest, MOST_TEXT_BYTES)
            self._text_bytes -= len(data or b"")
            if data:
                end = "The rest is left out" if file.size > len(data) else "End of the file"
                return [_text(INSIDE.format(text=data.decode(errors="ignore"), end=end))]
        return []

    def _has_room_for(self, file: StoredFile) -> bool:
        fits = self._images > 0 and file.size <= self._image_bytes
        if fits:
            self._images -= 1
            self._image_bytes -= file.size
        return fits


def _text(text: str) -> Plain:
    return {"type": "text", "text": text}
