"""Completion: the commands by name, and behind /resume the titles of one's own conversations."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document

from frontdesk import errors
from frontdesk.cli import output
from frontdesk.flow.commands import registry

RESUME = "resume"

Titles = Callable[[], Awaitable[list[str]]]


class CommandCompleter(Completer):
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
        if space and name.lower() == f"/{RESUME}" and "\n" not in begun:
            for title in await self._find_titles(begun.lstrip()):
                yield Completion(title, -len(begun.lstrip()), display=output.printable(title))
        for completion in self.get_completions(document, complete_event):
            yield completion

    async def _find_titles(self, begun: str) -> list[str]:
        try:
            titles = await self._titles()
        except errors.FrontdeskError:
            return []  # whoever sends the line is told
        return [each for each in titles if each.lower().startswith(begun.lower())]
