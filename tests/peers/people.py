"""People on a Matrix homeserver, as plain calls."""

import itertools
import time
from collections.abc import Callable
from typing import Any, TypeVar
from urllib.parse import quote

import httpx

from tests.patience import PATIENCE_SECONDS
from tests.peers.synapse import Account, Homeserver

MEGOLM = {"type": "m.room.encryption", "content": {"algorithm": "m.megolm.v1.aes-sha2"}}
NUMBERS = itertools.count()

Found = TypeVar("Found")


class Person:
    def __init__(self, server: Homeserver, account: Account) -> None:
        self._server = server
        self.account = account
        self.user_id = account.user_id

    def call(self, method: str, path: str, body: Any = None) -> Any:
        return self._server.call(self.account, method, path, body)

    def create_room(
        self, *invited: str, direct: bool = False, encrypted: bool = False, name: str = ""
    ) -> str:
        asked: dict[str, Any] = {"invite": list(invited), "is_direct": direct, "preset": "private_chat"}
        asked |= {"initial_state": [MEGOLM]} if encrypted else {}
        asked |= {"name": name} if name else {}
        return str(self.call("POST", "/createRoom", asked)["room_id"])

    def join(self, room: str) -> None:
        self.call("POST", f"/join/{quote(room)}", {})

    def members(self, room: str) -> list[str]:
        return list(self.call("GET", f"/rooms/{quote(room)}/joined_members")["joined"])

    def say(self, room: str, text: str, **more: Any) -> str:
        return self.send(room, "m.room.message", {"msgtype": "m.text", "body": text} | more)

    def send(self, room: str, kind: str, content: dict[str, Any], number: str | None = None) -> str:
        number = number or f"n{next(NUMBERS)}"
        told = self.call("PUT", f"/rooms/{quote(room)}/send/{kind}/{quote(number)}", content)
        return str(told["event_id"])

    def react(self, room: str, event_id: str, key: str) -> str:
        relates = {"rel_type": "m.annotation", "event_id": event_id, "key": key}
        return self.send(room, "m.reaction", {"m.relates_to": relates})

    def upload(self, data: bytes, kind: str) -> str:
        """Where the homeserver keeps it."""
        headers = {"authorization": f"Bearer {self.account.token}", "content-type": kind}
        url = f"{self._server.url}/_matrix/media/v3/upload"
        told = httpx.post(url, content=data, headers=headers, trust_env=False).raise_for_status()
        return str(told.json()["content_uri"])

    def download(self, place: str) -> bytes:
        url = f"{self._server.url}/_matrix/client/v1/media/download/{place.removeprefix('mxc://')}"
        headers = {"authorization": f"Bearer {self.account.token}"}
        return httpx.get(url, headers=headers, trust_env=False).raise_for_status().content

    def redact(self, room: str, event_id: str) -> None:
        self.call("PUT", f"/rooms/{quote(room)}/redact/{quote(event_id)}/n{next(NUMBERS)}", {})

    def events(self, room: str) -> list[dict[str, Any]]:
        """All that happened in a room, oldest first."""
        found: list[dict[str, Any]] = []
        place = f"/rooms/{quote(room)}/messages?dir=f&limit=500"
        page = self.call("GET", place)
        while page["chunk"]:
            found += page["chunk"]
            if "end" not in page:
                break
            page = self.call("GET", f"{place}&from={quote(page['end'])}")
        return found


def wait_for(look: Callable[[], Found]) -> Found:
    """What a look gives, once it gives something."""
    end = time.monotonic() + PATIENCE_SECONDS
    while not (found := look()):
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.1)
    return found


def said_by(user_id: str, events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The messages of somebody, each with the last that it was changed to."""
    messages = [
        each
        for each in events
        if each["sender"] == user_id and each["type"] == "m.room.message" and each["content"]
    ]
    changes = {
        each["content"]["m.relates_to"]["event_id"]: each["content"]["m.new_content"]
        for each in messages
        if each["content"].get("m.relates_to", {}).get("rel_type") == "m.replace"
    }
    first = [each for each in messages if "m.new_content" not in each["content"]]
    return [{**each, "content": changes.get(each["event_id"], each["content"])} for each in first]
