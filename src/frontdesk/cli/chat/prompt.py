"""The prompt: somebody at a terminal, with an editor for what they write below what they read."""

import asyncio
import contextlib
import os
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import click
from prompt_toolkit import PromptSession
from prompt_toolkit.application import Application
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.data_structures import Size
from prompt_toolkit.document import Document
from prompt_toolkit.filters import Condition
from prompt_toolkit.formatted_text import ANSI, AnyFormattedText, StyleAndTextTuples, to_formatted_text
from prompt_toolkit.key_binding import KeyBindings
from prompt_toolkit.output import ColorDepth, DummyOutput, Output
from prompt_toolkit.output.vt100 import Vt100_Output

from frontdesk import errors
from frontdesk.cli import output
from frontdesk.cli.chat.history import FILE, KeptHistory
from frontdesk.cli.chat.markdown import MAX_BLOCK_CHARACTERS, Painter, split_finished
from frontdesk.cli.chat.seats import Asking, Page, Seat, Written, signals
from frontdesk.flow.commands import registry

PROMPT = "> "
CONTINUATION = "  "
WORKING = "· working, {seconds} s; Ctrl-C stops it"
REDRAW_SECONDS = 0.05
TICK_SECONDS = 1.0
MAX_ECHO_CHARACTERS = 1_000
USUAL_ROWS, USUAL_COLUMNS = 24, 80
RESUME = "/resume"

Titles = Callable[[], Awaitable[list[str]]]


class CommandCompleter(Completer):
    """The commands by name, and behind /resume the titles of one's own conversations."""

    def __init__(self, titles: Titles) -> None:
        self._titles = titles

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:  # noqa: ARG002
        """The commands that begin like that."""
        begun = document.text_before_cursor
        if not begun.startswith("/") or begun != begun.strip():
            return
        for command in sorted(registry.COMMANDS, key=lambda each: each.name):
            if command.name.startswith(begun[1:].lower()):
                about = output.short(command.help)
                yield Completion(f"/{command.name}", -len(begun), display_meta=about)

    async def get_completions_async(
        self, document: Document, complete_event: CompleteEvent
    ) -> AsyncGenerator[Completion, None]:
        name, space, begun = document.text_before_cursor.partition(" ")
        if space and name.lower() == RESUME and "\n" not in begun:
            begun, titles = begun.lstrip(), []
            with contextlib.suppress(errors.FrontdeskError):  # whoever sends the line is told
                titles = await self._titles()
            for title in titles:
                if title.lower().startswith(begun.lower()):
                    yield Completion(title, -len(begun), display=output.printable(title))
        for completion in self.get_completions(document, complete_event):
            yield completion


class Prompt(Seat):
    """An editor; Ctrl-C on a line that is not empty clears it."""

    is_terminal = True

    def __init__(self, page: Page, writes_on: Output, titles: Titles, home: Path) -> None:
        super().__init__(page)
        self._busy_since: float | None = None
        self._asked: Asking | None = None
        self._set_aside = ""
        """What was begun before a question came; it comes back after it."""
        self._session: PromptSession[None] = PromptSession(
            self._message,
            output=writes_on,
            multiline=True,
            prompt_continuation=CONTINUATION,
            history=KeptHistory(home / FILE),
            completer=CommandCompleter(titles),
            complete_while_typing=Condition(self._writes_command),
            key_bindings=self._keys(),
        )
        self._app: Application[None] = self._session.app
        self._app.min_redraw_interval = REDRAW_SECONDS
        self._buffer = self._session.default_buffer

    def _writes_command(self) -> bool:
        return self._asked is None and self._buffer.text.startswith("/")

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[None]:
        ready = asyncio.Event()
        run = self._app.run_async(ready.set, handle_sigint=False, set_exception_handler=False)
        running = asyncio.create_task(run)
        # Until the editor has the terminal, the terminal itself would show what is typed.
        await ready.wait()
        running.add_done_callback(lambda _: self._leave())
        ticking = asyncio.create_task(self._tick())
        try:
            with signals(self._interrupt, self._leave):
                yield
        finally:
            ticking.cancel()
            self._busy_since = self._asked = None
            if self._app.is_running:
                self._buffer.reset()
                self._app.exit()
            with contextlib.suppress(OSError, EOFError):  # the terminal is gone
                await running

    async def _tick(self) -> None:
        """Count the seconds of a turn on the screen."""
        while True:
            await asyncio.sleep(TICK_SECONDS)
            if self._busy_since is not None:
                self._app.invalidate()

    def invite(self, *, busy: bool, asked: Asking | None = None) -> None:
        if busy and self._busy_since is None:
            self._busy_since = asyncio.get_running_loop().time()
        elif not busy:
            self._busy_since = None
        if asked != self._asked:
            self._ask(asked)
        self._draw()

    def _ask(self, asked: Asking | None) -> None:
        """Change what the line is for. Whatever was typed until now is of the line before."""
        if self._app.is_running:
            self._app.key_processor.feed_multiple(self._app.input.read_keys())
            self._app.key_processor.process_keys()
        if self._asked is None:
            self._set_aside = self._buffer.text
            self._buffer.reset()
        elif asked is None:
            self._buffer.text = self._buffer.text or self._set_aside
            self._buffer.cursor_position = len(self._buffer.text)
        else:
            self._buffer.reset()
        self._asked = asked

    def _draw(self) -> None:
        self._app.invalidate()

    def _message(self) -> AnyFormattedText:
        return [("bold", self._label())]

    def _label(self) -> str:
        return output.printable(self._asked.label) if self._asked else PROMPT

    def _keys(self) -> KeyBindings:
        keys = KeyBindings()
        empty = Condition(lambda: not self._buffer.text)
        writing = Condition(lambda: self._app.layout.has_focus(self._buffer))
        keys.add("enter", filter=writing)(lambda _: self._submit())
        keys.add("escape", "enter", filter=writing)(lambda _: self._buffer.insert_text("\n"))
        keys.add("c-c")(lambda _: self._interrupt())
        keys.add("c-d", filter=empty & writing)(lambda _: self._leave())
        keys.add("c-l")(lambda event: event.app.renderer.clear())
        return keys

    def _submit(self) -> None:
        text = self._buffer.text
        self._echo(text)
        self._buffer.reset(append_to_history=self._asked is None and bool(text.strip()))
        self._heard.put_nowait(Written(_speakable(text), self._asked))

    def _echo(self, text: str) -> None:
        """Leave above the prompt what was written at it."""

    def _interrupt(self) -> None:
        if self._buffer.text or not self._app.layout.has_focus(self._buffer):
            self._app.layout.focus(self._buffer)
            self._buffer.reset()
            self._draw()
        else:
            super()._interrupt()


def _speakable(text: str) -> str:
    """The text without halves of characters, which a terminal that speaks no UTF-8 sends."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


class DrawnPrompt(Prompt):
    """The answer appears above the prompt, its last lines as they are written."""

    def __init__(self, titles: Titles, home: Path, *, colours: bool) -> None:
        self._output = Vt100_Output(
            sys.stdout,
            _size,
            default_color_depth=None if colours else ColorDepth.DEPTH_1_BIT,
            enable_bell=False,
            enable_cpr=False,
        )
        self._drawn = DrawnPage(self, colours=colours)
        super().__init__(self._drawn, self._output, titles, home)

    @property
    def size(self) -> Size:
        return _size()

    def put(self, text: str) -> None:
        """Write above the prompt."""
        if not self._app.is_running:
            self._output.write_raw(text)
            self._output.flush()
            return
        self._app.renderer.erase()
        self._output.write_raw(text)
        self._draw()

    def refresh(self) -> None:
        self._app.invalidate()

    def _draw(self) -> None:
        """At once: what is typed from now on was typed with this in sight."""
        if self._app.is_running:
            self._app.renderer.render(self._app, self._app.layout)

    def _message(self) -> AnyFormattedText:
        parts: StyleAndTextTuples = []
        parts += to_formatted_text(ANSI(self._drawn.tail(max(self.size.rows // 2, 1))))
        if self._busy_since is not None and not self._asked:
            seconds = int(asyncio.get_running_loop().time() - self._busy_since)
            parts.append(("dim", f"{WORKING.format(seconds=seconds)[: self.size.columns]}\n"))
        return [*parts, ("bold", self._label())]

    def _echo(self, text: str) -> None:
        most = MAX_ECHO_CHARACTERS
        short = text if len(text) <= most else f"{text[:most]}… ({len(text):,} characters)"
        self._drawn.show(f"{self._label()}{_speakable(short)}".replace("\n", f"\n{CONTINUATION}"))


class DrawnPage(Page):
    """Markdown, block by block as it is complete."""

    def __init__(self, prompt: DrawnPrompt, *, colours: bool) -> None:
        self._prompt = prompt
        self._colours = colours
        self._painter = Painter(sys.stdout, colours=colours)
        self._text = ""
        """The block that is being written."""
        self._apart = False
        """Whether a block of the same answer was shown before."""

    def write(self, text: str) -> None:
        self._text += text
        if "\n" in text or len(self._text) > MAX_BLOCK_CHARACTERS:
            blocks, self._text = split_finished(self._text)
            for block in blocks:
                self._put_block(block)
        self._prompt.refresh()

    def end(self) -> None:
        rest, self._text = self._text, ""
        if rest.strip():
            self._put_block(rest)
        self._apart = False

    def _put_block(self, block: str) -> None:
        drawn = self._painter.paint(block, self._width)
        if drawn:
            self._prompt.put(f"\n{drawn}" if self._apart else drawn)
            self._apart = True

    def answer(self, text: str) -> None:
        self.end()
        self.write(text)
        self.end()

    def show(self, text: str, *, refused: bool = False) -> None:  # noqa: ARG002
        self._prompt.put(f"{output.printable(text)}\n")

    def aside(self, text: str) -> None:
        shown = f"· {output.printable(text)}"
        self._prompt.put(f"{click.style(shown, dim=True) if self._colours else shown}\n")

    def tail(self, most: int) -> str:
        """The last lines of what is being written."""
        if not self._text.strip():
            return ""
        lines = self._painter.paint(self._text, self._width).splitlines()
        gap = "\n" if self._apart and len(lines) < most else ""
        return gap + "".join(f"{line}\n" for line in lines[-most:])

    @property
    def _width(self) -> int:
        return self._prompt.size.columns


def _size() -> Size:
    try:
        columns, rows = os.get_terminal_size(sys.stdout.fileno())
    except OSError:
        columns, rows = 0, 0  # the terminal is gone
    return Size(rows=rows or USUAL_ROWS, columns=columns or USUAL_COLUMNS)


class DumbPrompt(Prompt):
    """On a terminal that can only be written on: the prompt stands there when something is waited for."""

    def __init__(self, titles: Titles, home: Path) -> None:
        self._written = DumbPage(self)
        self._shown: str | None = None
        """What stands on the line of the prompt, when it stands there."""
        super().__init__(self._written, DummyOutput(), titles, home)
        self._buffer.on_text_changed += lambda _: self._show_line()

    def invite(self, *, busy: bool, asked: Asking | None = None) -> None:
        super().invite(busy=busy, asked=asked)
        if busy and not asked:
            self.break_line()

    def _draw(self) -> None:
        self._show_line()

    def _show_line(self) -> None:
        if self._busy_since is not None and not self._asked:
            return
        line = f"{self._label()}{_speakable(self._buffer.text)}"
        if self._shown is None or not line.startswith(self._shown):
            self.break_line()
            self.put(line)
        else:
            self.put(line[len(self._shown) :])
        self._shown = line

    def _echo(self, text: str) -> None:  # noqa: ARG002
        self.break_line()

    def break_line(self) -> None:
        """Whatever comes now begins a line."""
        if self._shown is not None:
            self._shown = None
            self.put("\n")

    def put(self, text: str) -> None:
        sys.stdout.write(text)
        sys.stdout.flush()


class DumbPage(Page):
    def __init__(self, prompt: DumbPrompt) -> None:
        super().__init__()
        self._prompt = prompt

    def _put(self, text: str, *, err: bool = False) -> None:  # noqa: ARG002
        self._prompt.break_line()
        self._prompt.put(text)


def make_prompt(titles: Titles, home: Path, environ: Mapping[str, str]) -> Prompt:
    if environ.get("TERM", "dumb") in ("dumb", "unknown"):
        return DumbPrompt(titles, home)
    return DrawnPrompt(titles, home, colours=not environ.get("NO_COLOR"))
