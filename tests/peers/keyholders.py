"""Somebody who holds keys of their own and sends what they like, encrypted or not as it should be."""

import json
from typing import Any
from urllib.parse import quote

from mautrix.api import HTTPAPI
from mautrix.client import Client
from mautrix.crypto import MemoryCryptoStore, OlmMachine
from mautrix.crypto.store import StateStore
from mautrix.types import DeviceID, RoomID, UserID
from olm.account import Account as Identity
from olm.group_session import InboundGroupSession, OutboundGroupSession
from olm.session import OutboundSession
from olm.utility import ed25519_verify

from tests.peers.people import NUMBERS, Person
from tests.peers.synapse import Account

OLM, MEGOLM = "m.olm.v1.curve25519-aes-sha2", "m.megolm.v1.aes-sha2"


def canonical(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


class KeyHolder:
    """A person's device, its keys known to the homeserver."""

    def __init__(self, person: Person) -> None:
        self.person, self._account = person, Identity()
        self.curve, self.signing = (self._account.identity_keys[each] for each in ("curve25519", "ed25519"))
        device = person.account.device_id
        keys: dict[str, Any] = {
            "user_id": person.user_id,
            "device_id": device,
            "algorithms": [OLM, MEGOLM],
            "keys": {f"curve25519:{device}": self.curve, f"ed25519:{device}": self.signing},
        }
        signed = {person.user_id: {f"ed25519:{device}": self._account.sign(canonical(keys))}}
        person.call("POST", "/keys/upload", {"device_keys": keys | {"signatures": signed}})

    def keys_of(self, other: Person) -> dict[str, Any]:
        """What the homeserver says about somebody's device."""
        told = self.person.call("POST", "/keys/query", {"device_keys": {other.user_id: []}})
        found: dict[str, Any] = told["device_keys"].get(other.user_id, {})
        return dict(found.get(other.account.device_id, {}))

    def claim(self, other: Person) -> str:
        """One of the keys that somebody left for those who want to write to them."""
        asked = {other.user_id: {other.account.device_id: "signed_curve25519"}}
        told = self.person.call("POST", "/keys/claim", {"one_time_keys": asked})["one_time_keys"]
        (key,) = told[other.user_id][other.account.device_id].values()
        return str(key["key"])

    def send_secret(self, other: Person, kind: str, content: dict[str, Any]) -> None:
        """To somebody's device alone, as keys are sent."""
        device = other.account.device_id
        keys = self.keys_of(other)["keys"]
        curve, signing = keys[f"curve25519:{device}"], keys[f"ed25519:{device}"]
        payload = {
            "type": kind,
            "content": content,
            "sender": self.person.user_id,
            "sender_device": self.person.account.device_id,
            "keys": {"ed25519": self.signing},
            "recipient": other.user_id,
            "recipient_keys": {"ed25519": signing},
        }
        sealed = OutboundSession(self._account, curve, self.claim(other)).encrypt(json.dumps(payload))
        box = {curve: {"type": sealed.message_type, "body": sealed.ciphertext}}
        said = {"algorithm": OLM, "sender_key": self.curve, "ciphertext": box}
        self.send_raw(other, "m.room.encrypted", said)

    def send_raw(self, other: Person, kind: str, content: dict[str, Any]) -> None:
        messages = {other.user_id: {other.account.device_id: content}}
        self.person.call("PUT", f"/sendToDevice/{kind}/k{next(NUMBERS)}", {"messages": messages})

    def share(self, other: Person, room: str, session: OutboundGroupSession, **more: Any) -> None:
        """What opens the messages of a session."""
        content = {"algorithm": MEGOLM, "room_id": room, "session_id": session.id}
        self.send_secret(other, "m.room_key", {**content, "session_key": session.session_key, **more})

    def forward(self, other: Person, room: str, session: OutboundGroupSession, as_if_of: "KeyHolder") -> None:
        """What opens the messages of a session, said to be somebody else's."""
        exported = InboundGroupSession(session.session_key).export_session(0)
        content = {
            "algorithm": MEGOLM,
            "room_id": room,
            "session_id": session.id,
            "session_key": exported,
            "sender_key": as_if_of.curve,
            "sender_claimed_ed25519_key": as_if_of.signing,
            "forwarding_curve25519_key_chain": [],
        }
        self.send_secret(other, "m.forwarded_room_key", content)

    def left_by(self, other: Person) -> int:
        """How many keys somebody has left; asked as they would."""
        told = other.call("POST", "/keys/upload", {})
        return int(told["one_time_key_counts"].get("signed_curve25519", 0))

    def lock(self, room: str, session: OutboundGroupSession, plain: str) -> dict[str, Any]:
        return {
            "algorithm": MEGOLM,
            "sender_key": self.curve,
            "device_id": self.person.account.device_id,
            "session_id": session.id,
            "ciphertext": session.encrypt(plain),
        }

    def say(self, room: str, session: OutboundGroupSession, text: str) -> str:
        content = {"msgtype": "m.text", "body": text}
        plain = json.dumps({"room_id": room, "type": "m.room.message", "content": content})
        return self.say_anything(room, session, plain)

    def say_anything(self, room: str, session: OutboundGroupSession, plain: str) -> str:
        return self.person.send(room, "m.room.encrypted", self.lock(room, session, plain))

    def encrypt_room(self, room: str) -> None:
        path = f"/rooms/{quote(room)}/state/m.room.encryption/"
        self.person.call("PUT", path, {"algorithm": MEGOLM})


def new_session() -> OutboundGroupSession:
    return OutboundGroupSession()


class NoRooms(StateStore):
    """Of somebody who is nowhere."""

    async def is_encrypted(self, room_id: RoomID) -> bool:
        return False

    async def get_encryption_info(self, room_id: RoomID) -> None:
        return None

    async def find_shared_rooms(self, user_id: UserID) -> list[RoomID]:
        return []


async def set_up_recovery(url: str, account: Account) -> str:
    """As a person does in their client, on a device of its own: the account gets keys, and a recovery key."""
    api = HTTPAPI(url, account.token)
    client = Client(mxid=UserID(account.user_id), device_id=DeviceID(account.device_id), api=api)
    try:
        machine = OlmMachine(client, MemoryCryptoStore(account.user_id, "x"), NoRooms())
        await machine.load()
        await machine.share_keys()
        return str(await machine.generate_recovery_key())
    finally:
        await api.session.close()


def is_signed_by_its_account(person: Person, asked: Person) -> bool:
    """Whether the signature holds, as somebody else sees it."""
    told = asked.call("POST", "/keys/query", {"device_keys": {person.user_id: []}})
    (signer,) = told["self_signing_keys"][person.user_id]["keys"].values()
    device = told["device_keys"][person.user_id][person.account.device_id]
    signature = device.pop("signatures")[person.user_id][f"ed25519:{signer}"]
    device.pop("unsigned", None)
    ed25519_verify(signer, canonical(device), signature)
    return True
