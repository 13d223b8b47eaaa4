"""Parts of a message's content: the chat-completions form and that of pydantic-ai."""

import base64
import binascii
from collections.abc import Mapping, Sequence
from typing import Any, get_args

from pydantic_ai.messages import (
    AudioUrl,
    BinaryContent,
    DocumentUrl,
    FileUrl,
    ImageUrl,
    MultiModalContent,
    TextContent,
    UploadedFile,
    UploadedFileProviderName,
    UserContent,
    VideoUrl,
)

from frontdesk.model.messages import Plain

Shown = str | MultiModalContent

URLS: dict[str, type[FileUrl]] = {
    "image_url": ImageUrl,
    "audio_url": AudioUrl,
    "video_url": VideoUrl,
    "document_url": DocumentUrl,
}
AUDIO = {"wav": "audio/wav", "mp3": "audio/mpeg"}
FORMATS = {media_type: name for name, media_type in AUDIO.items()}
OPENAI = "openai"
PROVIDERS = get_args(UploadedFileProviderName)


def read_all(parts: Sequence[Any]) -> list[Shown]:
    """The parts as a model is shown them; one that cannot be shown is named in brackets."""
    return [_read(part) for part in parts]


def write_all(content: Sequence[UserContent]) -> list[Plain]:
    """The parts in the chat-completions form; what is no content (a cache point, say) is left out."""
    return [part for item in content if (part := _write(item)) is not None]


def _read(part: Any) -> Shown:
    if not isinstance(part, Mapping):
        return "[unknown content]"
    kind = part.get("type")
    read = _READERS.get(kind) if isinstance(kind, str) else None
    body = part.get(kind) if isinstance(kind, str) else None
    shown = read(kind, body) if read and kind and isinstance(body, Mapping) else None
    if shown is not None:
        return shown
    text = part.get("text")
    return text if isinstance(text, str) else f"[{kind if isinstance(kind, str) else 'unknown'} content]"


def _read_url(kind: str, body: Mapping[str, Any]) -> Shown | None:
    url, detail = body.get("url"), body.get("detail")
    if not isinstance(url, str):
        return None
    vendor = {"detail": detail} if isinstance(detail, str) else None
    if url.startswith("data:"):
        return _decode(url, vendor)
    found: Any = URLS[kind](url=url, vendor_metadata=vendor)
    return found  # type: ignore[no-any-return]


def _read_audio(_kind: str, body: Mapping[str, Any]) -> Shown | None:
    media_type = AUDIO.get(str(body.get("format")))
    return _decode(f"data:{media_type};base64,{body.get('data')}") if media_type else None


def _read_file(_kind: str, body: Mapping[str, Any]) -> Shown | None:
    if isinstance(body.get("file_data"), str):
        return _decode(body["file_data"])
    if not isinstance(body.get("file_id"), str):
        return None
    provider = body.get("provider_name", OPENAI)
    return UploadedFile(body["file_id"], provider) if provider in PROVIDERS else None


def _decode(uri: str, vendor: dict[str, Any] | None = None) -> BinaryContent | None:
    head, mark, data = uri.removeprefix("data:").partition(";base64,")
    try:
        content = base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        return None
    found = BinaryContent(content, media_type=head, vendor_metadata=vendor) if mark and head else None
    return BinaryContent.narrow_type(found) if found else None


_READERS = dict.fromkeys(URLS, _read_url) | {"input_audio": _read_audio, "file": _read_file}


def _write(item: UserContent) -> Plain | None:
    if isinstance(item, str | TextContent):
        return {"type": "text", "text": item if isinstance(item, str) else item.content}
    if isinstance(item, BinaryContent):
        return _write_binary(item)
    if isinstance(item, UploadedFile):
        provider = {} if item.provider_name == OPENAI else {"provider_name": item.provider_name}
        return {"type": "file", "file": {"file_id": item.file_id} | provider}
    for kind, url in URLS.items():
        if isinstance(item, url):
            return {"type": kind, kind: {"url": item.url} | _detail(item)}
    return None


def _write_binary(item: BinaryContent) -> Plain:
    if item.is_image:
        return {"type": "image_url", "image_url": {"url": item.data_uri} | _detail(item)}
    if item.media_type in FORMATS:
        return {
            "type": "input_audio",
            "input_audio": {"data": item.base64, "format": FORMATS[item.media_type]},
        }
    return {"type": "file", "file": {"file_data": item.data_uri}}


def _detail(item: FileUrl | BinaryContent) -> Plain:
    detail = (item.vendor_metadata or {}).get("detail")
    return {"detail": detail} if isinstance(detail, str) else {}
