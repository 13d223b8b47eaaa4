"""Media types: what bytes are, and whether that is what they were said to be."""

import mimetypes

UNKNOWN = "application/octet-stream"
TEXT = "text/plain"
HEAD_BYTES = 4096
"""So many tell what a file is."""

SIGNATURES: tuple[tuple[int, bytes, str], ...] = (
    (0, b"\x89PNG\r\n\x1a\n", "image/png"),
    (0, b"\xff\xd8\xff", "image/jpeg"),
    (0, b"GIF87a", "image/gif"),
    (0, b"GIF89a", "image/gif"),
    (8, b"WEBP", "image/webp"),
    (0, b"II*\x00", "image/tiff"),
    (0, b"MM\x00*", "image/tiff"),
    (4, b"ftypheic", "image/heic"),
    (4, b"ftypavif", "image/avif"),
    (0, b"%PDF-", "application/pdf"),
    (0, b"OggS", "audio/ogg"),
    (0, b"ID3", "audio/mpeg"),
    (0, b"\xff\xfb", "audio/mpeg"),
    (0, b"\xff\xf3", "audio/mpeg"),
    (0, b"\xff\xf1", "audio/aac"),
    (0, b"fLaC", "audio/flac"),
    (0, b"#!AMR", "audio/amr"),
    (8, b"WAVE", "audio/wav"),
    (8, b"AVI ", "video/x-msvideo"),
    (4, b"ftypM4A", "audio/mp4"),
    (4, b"ftypqt", "video/quicktime"),
    (4, b"ftyp", "video/mp4"),
    (0, b"\x1aE\xdf\xa3", "video/webm"),
    (0, b"PK\x03\x04", "application/zip"),
    (0, b"PK\x05\x06", "application/zip"),
    (0, b"\x1f\x8b", "application/gzip"),
    (0, b"BZh", "application/x-bzip2"),
    (0, b"\xfd7zXZ\x00", "application/x-xz"),
    (0, b"7z\xbc\xaf\x27\x1c", "application/x-7z-compressed"),
    (0, b"Rar!\x1a\x07", "application/vnd.rar"),
    (0, b"(\xb5/\xfd", "application/zstd"),
    (0, b"\x7fELF", "application/x-executable"),
    (0, b"MZ", "application/x-msdownload"),
    (0, b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "application/x-ole-storage"),
    (0, b"SQLite format 3\x00", "application/vnd.sqlite3"),
)
"""Where a file of each kind has which bytes. The first that fits counts."""

LETTERS = frozenset({b"MZ", b"BZh", b"ID3"})
"""So may a text begin, too."""
FAMILIES: tuple[frozenset[str], ...] = (
    frozenset({"image/jpeg", "image/jpg", "image/pjpeg"}),
    frozenset({"image/heic", "image/heif"}),
    frozenset({"audio/ogg", "video/ogg", "application/ogg", "audio/opus", "audio/vorbis"}),
    frozenset({"audio/mpeg", "audio/mp3", "audio/mpga"}),
    frozenset({"audio/aac", "audio/x-aac", "audio/aacp"}),
    frozenset({"audio/flac", "audio/x-flac"}),
    frozenset({"audio/wav", "audio/x-wav", "audio/wave", "audio/vnd.wave"}),
    frozenset(
        {"video/mp4", "audio/mp4", "audio/m4a", "audio/x-m4a", "video/quicktime", "video/x-m4v", "video/3gpp"}
    ),
    frozenset({"video/webm", "audio/webm", "video/x-matroska", "audio/x-matroska"}),
    frozenset({"video/x-msvideo", "video/avi", "video/vnd.avi"}),
    frozenset({"application/gzip", "application/x-gzip", "application/x-tar", "application/x-gtar"}),
    frozenset({"application/vnd.rar", "application/x-rar-compressed", "application/x-rar"}),
    frozenset(
        {"application/x-msdownload", "application/vnd.microsoft.portable-executable", "application/x-dosexec"}
    ),
    frozenset(
        {
            "application/x-executable",
            "application/x-sharedlib",
            "application/x-elf",
            "application/x-pie-executable",
        }
    ),
    frozenset({"application/vnd.sqlite3", "application/x-sqlite3"}),
)
"""Names for what cannot be told apart by the first bytes."""
ZIPPED = ("application/vnd.openxmlformats-", "application/vnd.oasis.opendocument.", "application/epub+zip")
ZIPPED_NAMES = frozenset(
    {
        "application/zip",
        "application/x-zip-compressed",
        "application/java-archive",
        "application/vnd.android.package-archive",
        "application/vnd.ms-excel.sheet.macroenabled.12",
        "application/vnd.ms-word.document.macroenabled.12",
    }
)
OLE = ("application/msword", "application/vnd.ms-", "application/x-msi", "application/x-ole-storage")
WRITTEN = (
    "application/json",
    "application/xml",
    "application/javascript",
    "application/ecmascript",
    "application/toml",
    "application/yaml",
    "application/x-",
    "application/sql",
    "application/rtf",
    "application/pgp-",
    "image/svg",
    "message/",
    "model/",
)
"""What is written in letters besides ``text/``."""
SUFFIXES = {
    "image/png": ".png",
    "image/jpeg": ".jpg",
    "image/gif": ".gif",
    "image/webp": ".webp",
    "image/tiff": ".tiff",
    "image/heic": ".heic",
    "application/pdf": ".pdf",
    "audio/ogg": ".ogg",
    "audio/mpeg": ".mp3",
    "audio/wav": ".wav",
    "audio/flac": ".flac",
    "audio/mp4": ".m4a",
    "video/mp4": ".mp4",
    "video/quicktime": ".mov",
    "video/webm": ".webm",
    TEXT: ".txt",
}
"""How files of a kind are called. What others look into by its name, as archives, has none."""
KNOWN = frozenset(kind for _, _, kind in SIGNATURES).union(*FAMILIES)


def plain(kind: str | None) -> str:
    """A media type alone: in small letters, without what is said beside it; unknown where it is none."""
    bare = (kind or "").partition(";")[0].strip().lower()
    main, slash, sub = bare.partition("/")
    good = slash and main.isalnum() and sub and len(bare) <= len(UNKNOWN) * 4
    return bare if good and bare.isascii() and bare.isprintable() and " " not in bare else UNKNOWN


def guess(name: str) -> str:
    """What a file is by its name."""
    return plain(mimetypes.guess_type(name, strict=False)[0])


def look(head: bytes, *, whole: bool = False) -> str:
    """What a file is by its first bytes; unknown where they do not tell. ``whole``: there are no more."""
    for offset, signature, kind in SIGNATURES:
        if head[offset : offset + len(signature)] == signature:
            return TEXT if signature in LETTERS and _is_text(head, whole) else kind
    return TEXT if _is_text(head, whole) else UNKNOWN


def _is_text(head: bytes, whole: bool) -> bool:
    try:
        text = head.decode()
    except UnicodeDecodeError as error:
        # The last character may have been cut in two.
        if whole or error.end < len(head) or error.start < len(head) - 3:
            return False
        text = head[: error.start].decode()
    return not any(sign < " " and sign not in "\t\n\r\f\x1b" for sign in text)


def agrees(said: str, found: str) -> bool:
    """Whether bytes that look like one kind may be of the other. Kinds that nobody knows the look of may be
    anything that has none either."""
    if said in (UNKNOWN, found):
        return True
    if found == UNKNOWN:
        return said not in KNOWN and not is_written(said)
    if found == TEXT:
        return is_written(said)
    if found == "application/zip":
        return said in ZIPPED_NAMES or said.startswith(ZIPPED)
    if found == "application/x-ole-storage":
        return said.startswith(OLE)
    return any(said in family and found in family for family in FAMILIES)


def is_written(kind: str) -> bool:
    """Whether a file of this kind is a text."""
    return (
        kind.startswith("text/")
        or (kind.startswith(WRITTEN) and kind not in KNOWN)
        or kind.endswith(("+xml", "+json"))
    )


def suffix(head: bytes, *, whole: bool = False) -> str:
    """How the name of a file ends that is kept by its bytes."""
    return SUFFIXES.get(look(head, whole=whole), "")
