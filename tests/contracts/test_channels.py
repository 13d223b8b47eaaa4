"""Every built-in channel holds the channel contract, over real HTTP."""

import json
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, ClassVar

import httpx

from frontdesk.channels import api_server, webhook
from frontdesk.formats import webhooks
from frontdesk.testing import channels
from tests import loopback

SECRET = "whsec_c2l4dGVlbiBieXRlcyBvciBtb3JlIG9mIGl0"
TIMEOUT_SECONDS = 5.0


class WebhookBench:
    def __init__(self, account: str | None, receiver: loopback.Receiver, **more: bool) -> None:
        self.receiver = receiver
        self.url = ""
        options = webhook.Options(
            callback_url=receiver.url,
            secrets=(lambda: SECRET,),
            timeout_seconds=TIMEOUT_SECONDS,
            **more,
        )
        self.channel = webhook.Channel(options, account)

    async def inject(self, event: channels.PlatformEvent) -> bool:
        told = {"id": event.id, "chat_id": event.chat_id, "user_id": event.user_id, "text": event.text}
        body = json.dumps({**told, **event.forged}).encode()
        timestamp = int(time.time())
        headers = {
            webhooks.ID: "msg",
            webhooks.TIMESTAMP: str(timestamp),
            webhooks.SIGNATURE: webhooks.sign(SECRET, "msg", timestamp, body),
        }
        async with httpx.AsyncClient(trust_env=False) as client:
            answer = await client.post(self.url, content=body, headers=headers)
        return answer.is_success

    async def arrived(self) -> Sequence[channels.Arrival]:
        bodies: list[tuple[dict[str, Any], str]] = [
            (json.loads(each.body), each.headers[webhooks.ID]) for each in self.receiver.received
        ]
        seen = {
            body.get("draft") or number: channels.Arrival(
                text=body["text"], chat_id=body["chat_id"], id=delivery_id
            )
            for number, (body, delivery_id) in enumerate(bodies)
        }
        return list(seen.values())

    async def trouble(self, trouble: channels.Trouble | None) -> None:
        self.receiver.hangs = trouble is channels.Trouble.HANGS
        self.receiver.cuts = trouble is channels.Trouble.CUTS
        self.receiver.status = 500 if trouble is channels.Trouble.FAILS else 200
        if trouble is channels.Trouble.REFUSES:
            await self.receiver.refuse()
        else:
            await self.receiver.open()


class TestWebhook(channels.SendingContract):
    texts: ClassVar[tuple[str, ...]] = (*channels.ChannelContract.texts, "a NUL \0 too", "  padded \r\n")
    switches: ClassVar[dict[str, bool]] = {}

    def open_bench(
        self, desk: channels.RecordingDesk, account: str | None = None
    ) -> AbstractAsyncContextManager[WebhookBench]:
        return self._opened(desk, account)

    @asynccontextmanager
    async def _opened(self, desk: channels.RecordingDesk, account: str | None) -> AsyncIterator[WebhookBench]:
        async with loopback.receiver() as receiver:
            bench = WebhookBench(account, receiver, **self.switches)
            async with loopback.receiving(bench.channel, desk) as url:
                bench.url = url + bench.channel.routes[0].path
                yield bench


class TestWebhookWithAForgetfulReceiver(TestWebhook):
    switches: ClassVar[dict[str, bool]] = {"idempotent": False}


class TestWebhookThatStreams(channels.EditingContract, TestWebhook):
    switches: ClassVar[dict[str, bool]] = {"stream": True}


class ApiServerBench:
    def __init__(self, channel: api_server.Channel, url: str) -> None:
        self.channel = channel
        self.url = url
        self.answers: list[channels.Arrival] = []

    async def inject(self, event: channels.PlatformEvent) -> bool:
        message = {"role": "user", "content": event.text, **event.forged}
        headers = {
            "authorization": f"Bearer the token of {event.user_id}, no other",
            "x-frontdesk-session": event.chat_id,
            "idempotency-key": event.id,
        }
        async with httpx.AsyncClient(trust_env=False) as client:
            told = {"messages": [message], **event.forged}
            answer = await client.post(self.url, json=told, headers=headers)
        if answer.is_success:
            text = answer.json()["choices"][0]["message"]["content"]
            self.answers.append(channels.Arrival(text=text, chat_id=event.chat_id))
        return answer.is_success

    async def arrived(self) -> Sequence[channels.Arrival]:
        return self.answers


class TestApiServer(channels.CollectingContract):
    texts: ClassVar[tuple[str, ...]] = (*channels.ChannelContract.texts, "a NUL \0 too", "  padded \r\n")
    accounts: ClassVar[tuple[str | None, str | None]] = ("one", None)

    def open_bench(
        self, desk: channels.RecordingDesk, account: str | None = None
    ) -> AbstractAsyncContextManager[ApiServerBench]:
        return self._opened(desk, account)

    @asynccontextmanager
    async def _opened(
        self, desk: channels.RecordingDesk, account: str | None
    ) -> AsyncIterator[ApiServerBench]:
        tokens = {user: (lambda user=user: f"the token of {user}, no other") for user in self.users}
        channel = api_server.Channel(api_server.Options(tokens=tokens), account)
        async with loopback.receiving(channel, desk) as url:
            yield ApiServerBench(channel, url + channel.routes[0].path)
