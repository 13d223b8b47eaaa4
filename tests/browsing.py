"""A real browser, and somebody who looks at the pages with it."""

import shutil
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any
from urllib.parse import urlsplit

import pytest

WHY = "playwright is not installed on this platform"
playwright = pytest.importorskip("playwright.sync_api", reason=WHY)
async_api = pytest.importorskip("playwright.async_api", reason=WHY)

# The first has no windows, which take half of a browser's time, and nobody looks at them here.
NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
CHROMIUM = next(filter(None, map(shutil.which, NAMES)), None)
MISSING = "there is no Chromium on this machine; `make browser` installs one, or says how"

needs_browser = pytest.mark.skipif(CHROMIUM is None, reason=MISSING)

# Nothing but this machine is reached, whatever a page asks for.
OPTIONS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-quic",
    "--no-first-run",
    "--no-proxy-server",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1",
]
PATIENCE_MILLISECONDS = 60_000
playwright.expect.set_options(timeout=PATIENCE_MILLISECONDS)
DESKTOP = {"width": 1100, "height": 900}
PHONE = {"width": 360, "height": 740}

# Told by the browser about every refusal of ours to a script; what the page does then is tested.
REFUSED = "Failed to load resource: the server responded with a status of 4"

CONTRASTS = """() => {
  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const read = (color) => {
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = color;
    canvas.fillRect(0, 0, 1, 1);
    return [...canvas.getImageData(0, 0, 1, 1).data];
  };
  const light = ([r, g, b]) => [r, g, b]
    .map((each) => each / 255)
    .map((each) => (each <= 0.03928 ? each / 12.92 : ((each + 0.055) / 1.055) ** 2.4))
    .reduce((sum, each, index) => sum + each * [0.2126, 0.7152, 0.0722][index], 0);
  const ground = (element) => {
    for (let each = element; each; each = each.parentElement) {
      const color = read(getComputedStyle(each).backgroundColor);
      if (color[3] === 255) return color;
    }
    return [255, 255, 255, 255];
  };
  return [...document.querySelectorAll("body *")]
    .filter((each) => each.checkVisibility() && !["SCRIPT", "NOSCRIPT"].includes(each.tagName))
    .filter((each) => [...each.childNodes].some((node) => node.nodeType === 3 && node.data.trim()))
    .map((each) => {
      const [a, b] = [light(read(getComputedStyle(each).color)), light(ground(each))].sort((x, y) => y - x);
      return [each.textContent.trim().slice(0, 40), (a + 0.05) / (b + 0.05)];
    });
}"""


UNLISTED = """() => {
  const all = (what) => [...document.querySelectorAll(what)];
  const listed = all("dialog#keys kbd").map((each) => each.textContent);
  const shown = all("main kbd").flatMap((each) => each.textContent.split(" "));
  const own = all("main [data-key]");
  const named = (each) => each.dataset.name ?? each.getAttribute("aria-label") ?? each.textContent.trim();
  const names = (key) => new Set(own.filter((each) => each.dataset.key === key).map(named));
  const keys = [...own.map((each) => each.dataset.key), ...shown];
  return [...new Set(keys)].filter((key) => !listed.includes(key) || names(key).size > 1);
}"""


class BrowserTab:
    """Somebody with a browser of their own; what goes wrong in it is noted."""

    def __init__(self, context: Any, url: str) -> None:
        self.context = context
        self.url = url
        self.troubles: list[str] = []
        self.agrees = False
        """Whether they say yes where they are asked first; nobody expects a question otherwise."""
        context.set_default_timeout(PATIENCE_MILLISECONDS)
        self.page = self.open_page()

    def open_page(self) -> Any:
        """Another tab, watched."""
        page = self.context.new_page()
        page.on("console", self._hear)
        page.on("pageerror", lambda error: self.troubles.append(f"error: {error}"))
        page.on("dialog", self._dismiss)
        page.on("request", self._see)
        return page

    def go(self, path: str = "/approvals") -> Any:
        return self.page.goto(self.url + path)

    def sign_in(self, token: str) -> None:
        self.go()
        self.page.get_by_label("token").fill(token)
        self.page.get_by_role("button", name="Sign in").click()
        self.sees("Signed in as")

    def follow(self, link: str) -> None:
        """Sign in with a link: it asks first."""
        self.page.goto(link)
        self.press("Sign in")

    def sees(self, text: str) -> None:
        playwright.expect(self.page.locator("body")).to_contain_text(text, timeout=PATIENCE_MILLISECONDS)

    def sees_link(self, name: str, *, there: bool = True) -> None:
        link = self.page.get_by_role("link", name=name)
        playwright.expect(link).to_have_count(1 if there else 0, timeout=PATIENCE_MILLISECONDS)

    def press(self, button: str) -> None:
        """Move to the button, wait until it can be pressed, and press it."""
        found = self.page.get_by_role("button", name=button, exact=True)
        found.hover(force=True)
        found.click()

    def waits_until(self, button: str) -> None:
        """Until it can be pressed."""
        found = self.page.get_by_role("button", name=button, exact=True)
        playwright.expect(found).to_be_enabled(timeout=PATIENCE_MILLISECONDS)

    def can_press(self, button: str) -> bool:
        return bool(self.page.get_by_role("button", name=button, exact=True).is_enabled())

    def give_reason(self, reason: str) -> None:
        field = self.page.get_by_label("Reason", exact=True)
        if not field.is_visible():
            self.page.get_by_text("Add a reason").click()
        field.fill(reason)

    def button_count(self, name: str) -> int:
        return int(self.page.get_by_role("button", name=name, exact=True).count())

    def tab_to(self, name: str, most: int = 20) -> None:
        """Press Tab until the element of that name has the focus."""
        for _ in range(most):
            self.page.keyboard.press("Tab")
            if self.focused() == name:
                return
        raise AssertionError(f"{name} cannot be reached with the keyboard")

    def focused(self) -> str:
        """What has the focus: its words without key and sign, or its id."""
        return str(
            self.page.evaluate(
                """() => {
                    const { activeElement } = document;
                    const copy = activeElement.cloneNode(true);
                    copy.querySelectorAll("[aria-hidden]").forEach((each) => each.remove());
                    return copy.textContent.trim() || activeElement.id;
                }"""
            )
        )

    def overflow(self) -> int:
        """By how many pixels the page is wider than the window."""
        return int(self.page.evaluate("document.documentElement.scrollWidth - window.innerWidth"))

    def faint(self) -> list[Any]:
        """The texts that have too little contrast with what they stand on (WCAG AA)."""
        return [each for each in self.page.evaluate(CONTRASTS) if each[1] < 4.5]

    def unlisted_keys(self) -> list[str]:
        """The keys of this page that the list of keys leaves out, or calls by one of two names."""
        playwright.expect(self.page.locator("html.scripted")).to_be_attached(timeout=PATIENCE_MILLISECONDS)
        self.page.keyboard.press("?")
        shown = playwright.expect(self.page.locator("dialog#keys"))
        shown.to_be_visible(timeout=PATIENCE_MILLISECONDS)
        found: list[str] = self.page.evaluate(UNLISTED)
        self.page.keyboard.press("Escape")
        shown.to_be_hidden(timeout=PATIENCE_MILLISECONDS)
        return found

    def _hear(self, message: Any) -> None:
        if message.type in ("error", "warning") and not message.text.startswith(REFUSED):
            self.troubles.append(f"console: {message.text}")

    def _dismiss(self, dialog: Any) -> None:
        if self.agrees:
            dialog.accept()
            return
        self.troubles.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def _see(self, request: Any) -> None:
        parts = urlsplit(request.url)
        ours = request.url.startswith(f"{self.url}/")
        if not ours and parts.scheme != "data":
            self.troubles.append(f"request: {request.url}")


@contextmanager
def browser() -> Iterator[Any]:
    with playwright.sync_playwright() as started:
        opened = started.chromium.launch(executable_path=CHROMIUM, args=OPTIONS)
        yield opened
        opened.close()


@asynccontextmanager
async def page(url: str) -> AsyncIterator[Any]:
    """A page in a browser of its own, for a test that runs beside the service."""
    async with async_api.async_playwright() as started:
        opened = await started.chromium.launch(executable_path=CHROMIUM, args=OPTIONS)
        context = await opened.new_context(base_url=url)
        context.set_default_timeout(PATIENCE_MILLISECONDS)
        yield await context.new_page()
        await opened.close()


@contextmanager
def visiting(browser: Any, url: str, **options: Any) -> Iterator[BrowserTab]:
    """A visitor with nothing kept from before. Whatever went wrong in the browser fails the test."""
    context = browser.new_context(**{"viewport": DESKTOP} | options)
    try:
        visitor = BrowserTab(context, url)
        yield visitor
        assert visitor.troubles == [], visitor.troubles
    finally:
        context.close()


@contextmanager
def another_page(known: BrowserTab) -> Iterator[BrowserTab]:
    """A page of its own in the browser of somebody who is in already; nothing of it stays open."""
    opened = BrowserTab(known.context, known.url)
    try:
        yield opened
        assert opened.troubles == [], opened.troubles
    finally:
        for page in known.context.pages:
            page.close()
