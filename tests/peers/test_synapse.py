"""The homeserver that other tests talk to."""

from tests.peers.synapse import Homeserver


def test_people_talk_on_the_homeserver(synapse: Homeserver) -> None:
    ann, bob = synapse.register("ann-peer"), synapse.register("bob-peer")
    room = synapse.call(ann, "POST", "/createRoom", {"invite": [bob.user_id]})["room_id"]
    synapse.call(bob, "POST", f"/join/{room}")
    for number in range(20):
        text = {"msgtype": "m.text", "body": f"hello {number}"}
        synapse.call(ann, "PUT", f"/rooms/{room}/send/m.room.message/{number}", text)
        synapse.call(ann, "PUT", f"/rooms/{room}/send/m.room.message/{number}", text)
    events = synapse.call(bob, "GET", "/sync")["rooms"]["join"][room]["timeline"]["events"]
    assert [each["content"]["body"] for each in events if "body" in each["content"]][-1] == "hello 19"
    page = synapse.call(bob, "GET", f"/rooms/{room}/messages?dir=b&limit=100")["chunk"]
    assert sum(each["type"] == "m.room.message" for each in page) == 20
