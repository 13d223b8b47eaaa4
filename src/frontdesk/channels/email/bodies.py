"""What a person wrote in a mail: its text, without what they quote and sign with, and its files."""

import codecs
import html
import re
from collections.abc import Iterator
from email.message import Message

MOST_HTML_CHARACTERS = 200_000
MOST_TEXT_BYTES = 4 * 1024 * 1024
CHARSET = re.compile(
    r"utf-?(?:7|8|16|32)|ascii|iso8859-\d+|iso2022_|cp\d+|koi8-|gb|hz|big5|shift_jis|euc_|johab|mac-|tis-620"
)
"""Those in which people write: Python knows others, with which a few bytes keep it busy for hours."""
MOST_PARTS = 200
UNSEEN = frozenset({"head", "script", "style", "title", "blockquote"})
LINES = frozenset(
    {"br", "div", "p", "li", "tr", "h1", "h2", "h3", "h4", "h5", "h6", "pre", "ul", "ol", "table"}
)
TAG = re.compile(r"<(/?)([a-zA-Z][a-zA-Z0-9]{0,20})([^<>]{0,2000})>")
SIGNATURE = "-- "
SEPARATOR = re.compile(
    r"[-_]{3,}\s*(?:original message|ursprüngliche nachricht|message d'origine)\s*[-_]{3,}", re.I
)
MOST_INTRODUCTION_LINES = 3
EMPTY_LINES = re.compile(r"\n{3,}")


def parts(mail: Message) -> Iterator[Message]:
    """The parts that hold something, in their order; a mail inside a mail is one."""
    waiting = [mail]
    for _ in range(MOST_PARTS):
        if not waiting:
            return
        part = waiting.pop(0)
        inside = part.get_payload()
        if part.get_content_maintype() == "multipart" and isinstance(inside, list):
            waiting[:0] = [each for each in inside if isinstance(each, Message)]
        else:
            yield part


def is_file(part: Message) -> bool:
    return part.get_content_disposition() == "attachment" or (
        part.get_content_maintype() not in ("text", "multipart") or part.get_filename() is not None
    )


def files(mail: Message, *, is_cut: bool = False) -> list[Message]:
    """Its files; of a mail whose end was not read, those that are whole."""
    found = list(parts(mail))
    return [part for part in (found[:-1] if is_cut else found) if is_file(part)]


def payload(part: Message) -> bytes:
    if part.get_content_maintype() == "message":
        inside = part.get_payload()
        first = inside[0] if isinstance(inside, list) and inside else None
        return first.as_bytes() if isinstance(first, Message) else b""
    decoded = part.get_payload(decode=True)
    return decoded if isinstance(decoded, bytes) else b""


def written(mail: Message, most_characters: int) -> str:
    """The text of a mail, plain if there is such a part, else what its HTML shows."""
    texts = {
        part.get_content_subtype(): part for part in reversed([p for p in parts(mail) if not is_file(p)])
    }
    if "plain" in texts:
        whole = _decoded(texts["plain"])
    elif "html" in texts:
        whole = shown(_decoded(texts["html"])[:MOST_HTML_CHARACTERS])
    else:
        whole = ""
    whole = whole.replace("\r\n", "\n").replace("\r", "\n")[: most_characters * 2]
    return (without_quotes(whole) or whole.strip("\n"))[:most_characters]


def _decoded(part: Message) -> str:
    data = payload(part)[:MOST_TEXT_BYTES]
    try:
        charset = codecs.lookup(str(part.get_content_charset() or "utf-8")).name
        if not CHARSET.match(charset):
            charset = "utf-8"
        text = data.decode(charset, "replace")
    except (LookupError, ValueError):
        text = data.decode("latin-1")
    return text.encode("utf-8", "replace").decode()


def without_quotes(text: str) -> str:
    """The text without the mail that it answers, if that stands at its end, and without a signature."""
    lines = text.split("\n")
    for number, line in enumerate(lines):
        if SEPARATOR.fullmatch(line.strip()):
            lines = lines[:number]
            break
    end = len(lines)
    while end and (not lines[end - 1].strip() or lines[end - 1].startswith(">")):
        end -= 1
    if any(line.startswith(">") for line in lines[end:]):
        end = _before_introduction(lines, end)
    kept = lines[:end]
    if SIGNATURE in kept:
        kept = kept[: kept.index(SIGNATURE)]
    return "\n".join(kept).strip("\n")


def _before_introduction(lines: list[str], end: int) -> int:
    """Before the words by which a program introduces what it quotes: the last lines, up to a colon."""
    if end and lines[end - 1].rstrip().endswith(":"):
        for number in range(end - 1, max(end - 1 - MOST_INTRODUCTION_LINES, -1), -1):
            if number == 0 or not lines[number - 1].strip():
                return number
    return end


def shown(markup: str) -> str:
    """What a page shows, without what it quotes. In a time that grows with its length, no faster: mail is
    written by anybody."""
    text, hidden, depth, at = [], "", 0, 0
    markup = _without_comments(markup)
    for tag in TAG.finditer(markup):
        if not depth:
            text.append(markup[at : tag.start()].replace("\n", " "))
        at, (ends, name, rest) = tag.end(), tag.groups()
        name = name.lower()
        if depth:
            depth += (name == hidden) * (-1 if ends else 1)
        elif not ends and (name in UNSEEN or (name == "div" and "gmail_quote" in rest)):
            hidden, depth = name, 1
        elif name in LINES:
            text.append("\n")
    text.append("" if depth else markup[at:].replace("\n", " "))
    lines = [" ".join(html.unescape(line).split()) for line in "".join(text).split("\n")]
    return EMPTY_LINES.sub("\n\n", "\n".join(lines)).strip()


def _without_comments(markup: str) -> str:
    kept, at = [], 0
    while (begins := markup.find("<!--", at)) >= 0:
        kept.append(markup[at:begins])
        ends = markup.find("-->", begins)
        if ends < 0:
            return "".join(kept)
        at = ends + len("-->")
    return "".join([*kept, markup[at:]])
