"""Media types by their bytes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frontdesk.formats import media

PNG = b"\x89PNG\r\n\x1a\n" + bytes(20)
DOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"


@pytest.mark.parametrize(
    ("head", "kind"),
    [
        (PNG, "image/png"),
        (b"\xff\xd8\xff\xe0rest", "image/jpeg"),
        (b"RIFF\x00\x00\x00\x00WEBPVP8 ", "image/webp"),
        (b"OggS\x00\x02", "audio/ogg"),
        (b"%PDF-1.7", "application/pdf"),
        (b"PK\x03\x04rest", "application/zip"),
        (b"MZ\x90\x00", "application/x-msdownload"),
        ("name;größe\n".encode(), "text/plain"),
        (b"", "text/plain"),
        (b"MZ is the name of a river", "text/plain"),
        (b"\x00\x01\x02", media.UNKNOWN),
        (b"\xff\xfe\x41", media.UNKNOWN),
    ],
)
def test_bytes_tell_the_kind(head: bytes, kind: str) -> None:
    assert media.look(head, whole=True) == kind


def test_text_that_is_cut_in_the_middle_of_a_character_is_text() -> None:
    head = ("ä" * media.HEAD_BYTES).encode()[: media.HEAD_BYTES - 1]
    assert media.look(head) == media.TEXT
    assert media.look(head, whole=True) == media.UNKNOWN


@pytest.mark.parametrize(
    ("said", "found"),
    [
        ("image/jpg", "image/jpeg"),
        ("audio/opus", "audio/ogg"),
        ("audio/x-m4a", "video/mp4"),
        (DOCX, "application/zip"),
        ("application/msword", "application/x-ole-storage"),
        ("application/json", "text/plain"),
        ("text/csv", "text/plain"),
        ("image/svg+xml", "text/plain"),
        (media.UNKNOWN, "application/x-executable"),
        ("application/x-gzip", "application/gzip"),
        ("chemical/x-pdb", media.UNKNOWN),
    ],
)
def test_kinds_that_cannot_be_told_apart_agree(said: str, found: str) -> None:
    assert media.agrees(said, found)


@pytest.mark.parametrize(
    ("said", "found"),
    [
        ("image/png", "application/x-msdownload"),
        ("image/png", "text/plain"),
        ("image/png", media.UNKNOWN),
        ("text/plain", "application/zip"),
        ("text/plain", media.UNKNOWN),
        ("application/pdf", "application/zip"),
        ("audio/ogg", "video/mp4"),
        (DOCX, "application/x-executable"),
    ],
)
def test_file_that_is_not_what_it_says_does_not_agree(said: str, found: str) -> None:
    assert not media.agrees(said, found)


@given(st.text(max_size=200))
def test_media_type_of_a_stranger_is_one_word_or_unknown(said: str) -> None:
    kind = media.plain(said)
    assert kind.isascii()
    assert kind.isprintable()
    assert " " not in kind
    assert "/" in kind
    assert len(kind) <= 100


@given(st.binary(max_size=64), st.booleans())
def test_looking_is_total(head: bytes, whole: bool) -> None:
    found = media.look(head, whole=whole)
    assert media.agrees(found, found)
    assert "/" not in media.suffix(head, whole=whole)
