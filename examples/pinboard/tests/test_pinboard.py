"""The channel holds what every channel must hold."""

import asyncio
import json
from contextlib import asynccontextmanager

from frontdesk_pinboard.channel import Channel, Options

from frontdesk.testing.channels import Arrival, SendingContract, Trouble
from frontdesk.testing.wire import HttpReply, HttpServer

REPLIES = {Trouble.FAILS: HttpReply(status=503), Trouble.CUTS: HttpReply(cut=True)}


class Board:
    """The platform, tied to a channel. Who asks for what stands behind a place has all before it."""

    def __init__(self):
        self.server = HttpServer(self.answer)
        self.notes, self.answers, self.faced = [], {}, None
        self.asked, self.times, self.reached = asyncio.Condition(), 0, 0

    async def answer(self, request):
        if request.method == "GET":
            return await self.show(int(request.fields["after"]))
        if self.faced is not Trouble.FAILS:
            self.answers.setdefault(request.path, request.fields)
        if self.faced is Trouble.HANGS:
            await asyncio.Event().wait()
        return REPLIES.get(self.faced, HttpReply())

    async def show(self, after):
        async with self.asked:
            self.times, self.reached = self.times + 1, after
            self.asked.notify_all()
        return HttpReply(body=json.dumps(self.notes[after:]).encode())

    def pin(self, event):
        place = len(self.notes) + 1
        said = {"id": event.id, "chat": event.chat_id, "user": event.user_id, "text": event.text}
        self.notes.append({**said, "place": place, **event.forged})
        return place

    async def inject(self, event):
        place = self.pin(event)
        async with self.asked:
            enough = self.times + 2
            await self.asked.wait_for(lambda: self.reached >= place or self.times >= enough)
            return self.reached >= place

    async def arrived(self):
        pinned = self.answers.items()
        return [Arrival(text=each["text"], chat_id=each["chat"], id=path) for path, each in pinned]

    async def trouble(self, trouble):
        self.faced = trouble
        await (self.server.refuse() if trouble is Trouble.REFUSES else self.server.listen())

    async def start(self, desk, account):
        url = f"http://127.0.0.1:{self.server.port}"
        self.channel = Channel(Options(url=url, pause_seconds=0.01, timeout_seconds=0.5), account)
        self.receiving = asyncio.create_task(self.channel.receive(desk))
        self.begin_anew = lambda: self.start(desk, account)

    async def stop(self):
        self.receiving.cancel()
        await asyncio.wait([self.receiving])
        await self.channel.close()

    async def restart(self, *meanwhile):
        await self.stop()
        for event in meanwhile:
            self.pin(event)
        await self.begin_anew()


class TestPinboard(SendingContract):
    @asynccontextmanager
    async def open_bench(self, desk, account=None):
        board = Board()
        await board.server.listen()
        await board.start(desk, account)
        yield board
        await board.stop()
        await board.server.close()
