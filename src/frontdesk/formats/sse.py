"""Server-sent events: the data of each event, read from pieces of any size, within bounds."""

from collections.abc import Iterator

from frontdesk import errors

MAX_LINE_BYTES = 1024 * 1024
MAX_STREAM_BYTES = 32 * 1024 * 1024
LINE_ENDS = (b"\n", b"\r")
BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class SseReader:
    """Takes a stream as it comes and gives the data of the events that are complete.

    Raises BrokenStream when a line or the whole stream is longer than allowed, or not UTF-8. An event that
    the stream ends in the middle of is not given.
    """

    def __init__(
        self,
        endpoint: str,
        *,
        max_line_bytes: int = MAX_LINE_BYTES,
        max_stream_bytes: int = MAX_STREAM_BYTES,
    ) -> None:
        self._endpoint = endpoint
        self._max_line_bytes = max_line_bytes
        self._max_stream_bytes = max_stream_bytes
        self._taken_bytes = 0
        self._line = bytearray()
        self._data: list[str] = []
        self._after_return = False
        self._begun = False

    def feed(self, piece: bytes) -> Iterator[str]:
        self._taken_bytes += len(piece)
        if self._taken_bytes > self._max_stream_bytes:
            raise self._broken(f"it is longer than {self._max_stream_bytes} bytes")
        for part in piece.splitlines(keepends=True):
            if not self._ends_a_return(part) and (line := self._complete(part)) is not None:
                yield from self._take(line)

    def _ends_a_return(self, part: bytes) -> bool:
        """Whether it is the second half of a line end that came in two pieces."""
        second_half = self._after_return and part == b"\n"
        self._after_return = part.endswith(b"\r")
        return second_half

    def _complete(self, part: bytes) -> bytes | None:
        """The line that the part completes."""
        self._line += part
        if len(self._line) > self._max_line_bytes:
            raise self._broken(f"a line is longer than {self._max_line_bytes} bytes")
        if not part.endswith(LINE_ENDS):
            return None
        line = bytes(self._line).rstrip(b"\r\n")
        self._line.clear()
        return line

    def _take(self, line: bytes) -> Iterator[str]:
        if not self._begun:
            self._begun = True
            line = line.removeprefix(BYTE_ORDER_MARK)
        if not line and self._data:
            yield "\n".join(self._data)
            self._data.clear()
        name, _, value = line.partition(b":")
        if name == b"data":
            self._data.append(self._decode(value.removeprefix(b" ")))

    def _decode(self, value: bytes) -> str:
        try:
            return value.decode()
        except UnicodeDecodeError as error:
            raise self._broken("it is not UTF-8") from error

    def _broken(self, why: str) -> errors.BrokenStream:
        return errors.BrokenStream(endpoint=self._endpoint, why=why)
