"""Pictures of all pages: ``python -m tests.screenshots``, with a folder: on a desktop in light and dark, and
on a phone.

They are made with the program as a user starts it, and a real browser.
"""

import base64
import sys
import tempfile
from pathlib import Path
from typing import Any

from frontdesk.web.pages.frame import PLACES
from tests import browsing, samples, scenes
from tests.acceptance.sites import SiteDesk
from tests.acceptance.test_browser import Desk, alone

FOLDER = Path(__file__).parent.parent / "docs" / "pictures"
LOOKS = {"light": ("desktop", "light"), "dark": ("desktop", "dark"), "phone": ("phone", "light")}
PAGES = {place.name: place.path for place in PLACES}
SETTLED_MILLISECONDS = 1500
"""After which buttons can be pressed."""

SHRINK = """async (picture) => {
    const image = new Image();
    image.src = `data:image/png;base64,${picture}`;
    await image.decode();
    const canvas = document.createElement("canvas");
    Object.assign(canvas, { width: image.width, height: image.height });
    canvas.getContext("2d").drawImage(image, 0, 0);
    return canvas.toDataURL("image/webp", 0.8).split(",")[1];
}"""
"""A picture as WebP, a fifth as large."""


def take(visitor: Any, folder: Path, name: str) -> None:
    visitor.page.wait_for_timeout(SETTLED_MILLISECONDS)
    picture = base64.b64encode(visitor.page.screenshot()).decode()
    empty = visitor.context.new_page()
    (folder / f"{name}.webp").write_bytes(base64.b64decode(empty.evaluate(SHRINK, picture)))
    empty.close()


def take_all(browser: Any, desk: Desk, folder: Path, scheme: str) -> None:
    requests = {name: desk.ask(**fields) for name, fields in samples.REQUESTS.items()}
    for size, viewport in samples.SIZES.items():
        options = {"viewport": viewport, "color_scheme": scheme} | samples.KINDS[size]
        with browsing.visiting(browser, desk.page_url, **options) as visitor:
            visitor.go()
            take(visitor, folder, f"sign-in-{size}")
            visitor.sign_in(desk.token)
            visitor.sees("Live")
            take(visitor, folder, f"list-{size}")
            for name, asked in requests.items():
                visitor.go(f"/approvals/{asked['id']}")
                visitor.sees("Live")
                take(visitor, folder, f"{name}-{size}")


def take_site(browser: Any, desk: SiteDesk, folder: Path) -> None:
    """Each page of the site, as whoever runs it sees it in the middle of a day."""
    for look, (size, scheme) in LOOKS.items():
        options = {"viewport": samples.SIZES[size], "color_scheme": scheme} | samples.KINDS[size]
        with browsing.visiting(browser, desk.url, **options) as visitor:
            visitor.follow(desk.login_link())
            visitor.page.wait_for_selector(".rail nav")
            for name, path in PAGES.items():
                visitor.go(path)
                take(visitor, folder, f"site-{name}-{look}")
            visitor.go("/sessions")
            visitor.page.locator("[data-row]", has_text="Ops room").click()
            visitor.page.wait_for_selector(".log")
            take(visitor, folder, f"site-transcript-{look}")


def main(named: str = str(FOLDER)) -> None:
    folder = Path(named)
    folder.mkdir(parents=True, exist_ok=True)
    with browsing.browser() as browser:
        with tempfile.TemporaryDirectory() as home, alone(Path(home)) as desk:
            take_all(browser, desk, folder, "light")
        with tempfile.TemporaryDirectory() as home, scenes.working_day(Path(home)) as site:
            take_site(browser, site, folder)


if __name__ == "__main__":
    main(*sys.argv[1:2])
