"""How much a browser loads for a page."""

import html
import re

from tests.flow.harness import House
from tests.integration.test_session_pages import begin, house, site
from tests.integration.visitors import visitor

__all__ = ["house", "site"]


async def test_first_page_is_light(house: House, site: str) -> None:
    """With all that it loads, and the second look that it takes when it begins to follow."""
    for number in range(60):
        said = {"role": "assistant", "content": f"{number}: " + "words and words " * 20}
        await begin(house, said, user=f"user{number}", chat_name=f"A room with a long name {number}")
    async with visitor(site, "ada") as ada:
        page = await ada.get("/sessions")
        assert page.text.count("data-row") == 50
        wanted = {html.unescape(each) for each in re.findall(r'(?:href|src)="(/static/[^"]+)"', page.text)}
        weight, loaded = 2 * page.num_bytes_downloaded, set[str]()
        while wanted - loaded:
            address = (wanted - loaded).pop()
            loaded.add(address)
            answer = (await ada.get(address)).raise_for_status()
            weight += answer.num_bytes_downloaded
            folder = address.rpartition("/")[0]
            wanted |= {
                f"{folder}/{each}" for each in re.findall(r'(?:from|import) "\./([^"]+)"', answer.text)
            }
        assert {each.rpartition("/")[2] for each in loaded} > {
            "style.css",
            "sessions.js",
            "live.js",
            "write.js",
        }
        assert weight < 150_000
        style = next(each for each in loaded if each.endswith("/style.css"))
        packed, plain = [
            await ada.get(style, headers={"accept-encoding": each}) for each in ("gzip, br", "identity")
        ]
        assert (packed.headers["content-encoding"], plain.headers.get("content-encoding")) == ("gzip", None)
        assert packed.content == plain.content
