"""The screen: what happens in a turn, as people see it."""

from frontdesk.app.office import Plain
from frontdesk.cli import output
from frontdesk.cli.chat.seats import Page

MAX_ASIDE_CHARACTERS = 160


class Screen:
    """One turn: the answer as it is written, and what goes on beside it."""

    def __init__(self, page: Page, *, obeys: bool = False) -> None:
        """``obeys``: what is answered is a command, by the gateway itself."""
        self._page = page
        self._obeys = obeys
        self._said = ""
        """What the agent has said since it last called a tool."""
        self._said_before: list[str] = []
        self._told: set[str] = set()
        """The notices, and the questions, that were shown already."""

    def show(self, happened: Plain) -> None:
        match happened["type"]:
            case "text":
                self._page.write(happened["text"])
                self._said += happened["text"]
            case "call":
                self._said_before.append(self._said.strip())
                self._said = ""
                self.aside(f"{happened['name']} {happened['arguments']}")
            case "result" if happened["is_error"]:
                self.aside(f"{happened['name'] or 'tool'} failed: {happened['content']}")
            case "asked":
                self._told.add(happened["id"])
                self._page.end()
                self._page.show(output.fitted(happened["text"]))
            case "restarted":
                self._said, self._said_before = "", []
            case "failed" if happened["retryable"]:
                self.aside(f"failed, and is tried again: {happened['message']}")
            case "notice":
                self.tell(happened)
            case "end":
                self._end(happened)

    def _end(self, ending: Plain) -> None:
        """What was said and not seen yet: all of it, when the turn ran elsewhere."""
        self._page.end()
        for each in ending["deliveries"]:
            if not self._has_shown(each):
                self.tell(each, refused=bool(ending["error"]))

    def _has_shown(self, delivery: Plain) -> bool:
        if self._told & {delivery["id"], delivery["confirmation_id"]}:
            return True
        text = delivery["text"].strip()
        return self._said.strip().endswith(text) or text in self._said_before

    def tell(self, delivery: Plain, *, refused: bool = False) -> None:
        """Show something that was said as a whole; why something was refused is no answer."""
        self._told.add(delivery["id"])
        text = output.fitted(delivery["text"]) if delivery["confirmation_id"] else delivery["text"]
        if delivery["kind"] == "notice":
            self._page.aside(text)
        elif self._obeys or refused or delivery["confirmation_id"]:
            self._page.show(text, refused=refused)
        else:
            self._page.answer(text)

    def aside(self, text: str) -> None:
        self._page.end()
        self._page.aside(output.short(text, MAX_ASIDE_CHARACTERS))
