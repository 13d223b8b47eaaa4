"""Somebody with another program, which encrypts with another library: run with the Python of `.peers/nio`.

``second_client.py URL USER_ID TOKEN DEVICE_ID FOLDER`` reads lines of JSON, ``["say", ROOM, TEXT]`` or
``["join", ROOM]``, and writes a line for each message, ``[ROOM, SENDER, TEXT, DECRYPTED]``; the text of one
that it cannot read is null.
"""

import asyncio
import json
import sys

import nio  # type: ignore[import-not-found]


async def main(url: str, user_id: str, token: str, device_id: str, folder: str) -> None:
    settings = nio.AsyncClientConfig(encryption_enabled=True, store_sync_tokens=True)
    client = nio.AsyncClient(url, user_id, device_id=device_id, store_path=folder, config=settings)
    client.restore_login(user_id, device_id, token)
    client.add_event_callback(lambda room, event: tell(client, room, event), nio.RoomMessageText)
    client.add_event_callback(lambda room, event: tell(client, room, event), nio.MegolmEvent)
    await client.sync(timeout=0, full_state=True)
    await client.keys_upload() if client.should_upload_keys else None
    say("ready")
    await asyncio.gather(client.sync_forever(timeout=2000, loop_sleep_time=50), listen(client))


def tell(client: "nio.AsyncClient", room: "nio.MatrixRoom", event: "nio.Event") -> None:
    if event.sender != client.user_id:
        say([room.room_id, event.sender, getattr(event, "body", None), getattr(event, "decrypted", False)])


def say(told: object) -> None:
    print(json.dumps(told), flush=True)


async def listen(client: "nio.AsyncClient") -> None:
    while line := await asyncio.to_thread(sys.stdin.readline):
        match json.loads(line):
            case ["join", room]:
                await client.join(room)
            case ["say", room, text]:
                content = {"msgtype": "m.text", "body": text}
                await client.room_send(room, "m.room.message", content, ignore_unverified_devices=True)
    sys.exit(0)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
