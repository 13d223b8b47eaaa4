"""A board over HTTP: notes are read from a place on, an answer is pinned under an id of its own."""

import asyncio

import httpx
import msgspec

from frontdesk import Platform, SessionSource
from frontdesk.channels import streams
from frontdesk.contracts.channels import Capabilities, Incoming
from frontdesk.model.chats import Cursor
from frontdesk.model.deliveries import NotSent, Sent, Unknown


class Options(msgspec.Struct, frozen=True, kw_only=True):
    url: str
    pause_seconds: float = 2.0
    timeout_seconds: float = 10.0


class Channel:
    Options, name, routes = Options, Platform.register("pinboard"), ()
    capabilities = Capabilities(text_limit=10_000, idempotent_seconds=float("inf"), reads_alone=True)

    def __init__(self, options, account=None):
        self.options, self.account = options, account
        self.http = httpx.AsyncClient(base_url=options.url, timeout=options.timeout_seconds, trust_env=False)

    async def receive(self, desk):
        after, pauses = (await desk.cursors()).get("", "0"), streams.GrowingPauses()
        while True:
            try:
                found = await self.http.get("/notes", params={"after": after})
                for note in found.raise_for_status().json():
                    await streams.hand_over(desk, self.read(note), Cursor(value=str(note["place"])))
                    after = note["place"]
                pauses.forget()
                await asyncio.sleep(self.options.pause_seconds)
            except (httpx.HTTPError, ValueError, *streams.LATER):
                await pauses.wait()

    def read(self, note):
        chat, user = note["chat"], note["user"]
        source = SessionSource(platform=self.name, account=self.account, chat_id=chat, user_id=user)
        return Incoming(source=source, text=note["text"], event_id=note["id"])

    async def send(self, delivery):
        pinned = {"chat": delivery.to.chat_id, "text": delivery.text}
        try:
            reply = await self.http.put(f"/answers/{delivery.id}", json=pinned)
        except httpx.HTTPError as error:
            never_left = isinstance(error, httpx.ConnectError | httpx.ConnectTimeout)
            return (NotSent if never_left else Unknown)(why=repr(error))
        return Sent() if reply.is_success else NotSent(why=f"status {reply.status_code}")

    async def close(self):
        await self.http.aclose()
