"""What goes out to a homeserver, which takes events of 64 KiB."""

import json
from datetime import UTC, datetime

import pytest

from frontdesk.channels.matrix import Channel, Options, outbound
from frontdesk.model.deliveries import Delivery
from frontdesk.model.platforms import Platform
from frontdesk.model.sources import SessionSource

ROOM = SessionSource(platform=Platform.MATRIX, chat_id="!room:frontdesk.test", user_id="@ann:frontdesk.test")
NOW = datetime(2026, 1, 1, tzinfo=UTC)
EVENT_BYTES, ENVELOPE_BYTES = 65_536, 4_000
LIMIT = Channel(Options(homeserver="https://x", access_token=lambda: "x")).capabilities.text_limit or 0
PIECES = ("a", "**a** ", "я", "字", "👩", '"', "| a | b |\n|---|---|\n" + "| 1 | 2 |\n" * 50)


def delivery(text: str, draft: str | None = None) -> Delivery:
    extra = {"draft": draft} if draft else {}
    return Delivery(id="d", lane="l", to=ROOM, text=text, is_markdown=True, extra=extra, created_at=NOW)


@pytest.mark.parametrize("draft", [None, "$first"])
@pytest.mark.parametrize("piece", PIECES)
def test_longest_text_fits_encrypted_or_not_also_as_a_change(piece: str, draft: str | None) -> None:
    text = piece * (LIMIT // len(piece.encode()))
    sealed = outbound.message(delivery(text, draft), is_encrypted=True)
    assert len(json.dumps(sealed)) * 4 / 3 < EVENT_BYTES - ENVELOPE_BYTES
    clear = outbound.message(delivery(text, draft))
    assert len(json.dumps(clear, ensure_ascii=False).encode()) < EVENT_BYTES - ENVELOPE_BYTES


def test_change_says_the_whole_to_those_who_know_changes() -> None:
    changed = outbound.message(delivery("**new**", "$first"), is_encrypted=True)
    assert changed["m.new_content"]["formatted_body"].strip() == "<p><strong>new</strong></p>"
    assert changed["body"] == "* new"
