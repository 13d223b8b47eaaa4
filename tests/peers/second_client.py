"""Somebody with another program, which encrypts with another library: run with the Python of `.peers/nio`.

``second_client.py URL USER_ID TOKEN DEVICE_ID FOLDER`` reads lines of JSON, ``["say", ROOM, TEXT]``,
``["join", ROOM]``, ``["file", ROOM, TEXT]`` or ``["damaged", ROOM, TEXT]``, a file whose digest is wrong, and
writes a line for each message, ``[ROOM, SENDER, TEXT, DECRYPTED]``; the text of one that it cannot read is
null, of a file it is what is in it.
"""

import asyncio
import io
import json
import sys

import nio  # type: ignore[import-not-found]
from nio.crypto import attachments  # type: ignore[import-not-found]


async def main(url: str, user_id: str, token: str, device_id: str, folder: str) -> None:
    settings = nio.AsyncClientConfig(encryption_enabled=True, store_sync_tokens=True)
    client = nio.AsyncClient(url, user_id, device_id=device_id, store_path=folder, config=settings)
    client.restore_login(user_id, device_id, token)
    client.add_event_callback(lambda room, event: tell(client, room, event), nio.RoomMessageText)
    client.add_event_callback(lambda room, event: tell(client, room, event), nio.MegolmEvent)
    client.add_event_callback(lambda room, event: open_file(client, room, event), nio.RoomEncryptedMedia)
    await client.sync(timeout=0, full_state=True)
    await client.keys_upload() if client.should_upload_keys else None
    say("ready")
    await asyncio.gather(client.sync_forever(timeout=2000, loop_sleep_time=50), listen(client))


def tell(client: "nio.AsyncClient", room: "nio.MatrixRoom", event: "nio.Event") -> None:
    if event.sender != client.user_id:
        say([room.room_id, event.sender, getattr(event, "body", None), getattr(event, "decrypted", False)])


async def open_file(
    client: "nio.AsyncClient", room: "nio.MatrixRoom", event: "nio.RoomEncryptedMedia"
) -> None:
    if event.sender != client.user_id:
        kept = await client.download(event.url)
        opened = attachments.decrypt_attachment(kept.body, event.key["k"], event.hashes["sha256"], event.iv)
        say([room.room_id, event.sender, opened.decode(), True])


async def send_file(client: "nio.AsyncClient", room: str, text: str, damaged: bool) -> None:
    data = text.encode()
    kept, opens = await client.upload(
        lambda *_: io.BytesIO(data), "text/plain", "a.txt", encrypt=True, filesize=len(data)
    )
    file = opens | {"url": kept.content_uri}
    if damaged:
        file["hashes"] = {"sha256": "A" * 43}
    info = {"mimetype": "text/plain", "size": len(data)}
    content = {"msgtype": "m.file", "body": "a.txt", "file": file, "info": info}
    await client.room_send(room, "m.room.message", content, ignore_unverified_devices=True)


def say(told: object) -> None:
    print(json.dumps(told), flush=True)


async def knows(client: "nio.AsyncClient", room: str) -> None:
    """What is said before that room is known to be encrypted is sent in the clear."""
    while room not in client.rooms or not client.rooms[room].encrypted:
        await client.synced.wait()


async def listen(client: "nio.AsyncClient") -> None:
    while line := await asyncio.to_thread(sys.stdin.readline):
        what, room, *_ = order = json.loads(line)
        if what != "join":
            await knows(client, room)
        match order:
            case ["join", room]:
                await client.join(room)
            case ["file" | "damaged" as kind, room, text]:
                await send_file(client, room, text, kind == "damaged")
            case ["say", room, text]:
                content = {"msgtype": "m.text", "body": text}
                await client.room_send(room, "m.room.message", content, ignore_unverified_devices=True)
    sys.exit(0)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
