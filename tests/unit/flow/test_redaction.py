"""Hashing of personal ids."""

import hashlib
import subprocess
import sys
from typing import Any

import pytest

from frontdesk.flow import redaction
from frontdesk.flow.redaction import Redaction
from frontdesk.model.platforms import Platform
from frontdesk.model.sources import ChatType, SessionSource


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def test_a_user_id_becomes_user_and_twelve_hex() -> None:
    assert redaction.hash_user("49151") == f"user_{digest('49151')}"


def test_a_chat_id_becomes_twelve_hex_of_its_sha256() -> None:
    assert redaction.hash_chat("-100123") == digest("-100123")


def test_a_leading_platform_stays() -> None:
    assert redaction.hash_chat("telegram:-100123") == f"telegram:{digest('-100123')}"


def test_only_the_first_prefix_can_stay() -> None:
    assert redaction.hash_chat("signal:telegram:5") == f"signal:{digest('telegram:5')}"


def test_a_prefix_that_is_no_platform_is_hashed_with_the_rest() -> None:
    jid = "4915123456789:7@s.whatsapp.net"
    assert redaction.hash_chat(jid) == digest(jid)


@pytest.mark.parametrize("name", ["whatsapp", "signal", "telegram", "bluebubbles"])
def test_platforms_that_need_no_ids_for_mentions_are_covered(name: str) -> None:
    assert Redaction(True).covers(Platform(name))
    assert not Redaction(False).covers(Platform(name))


@pytest.mark.parametrize("name", ["discord", "slack", "matrix", "email", "local", "web"])
def test_other_platforms_are_not_covered(name: str) -> None:
    assert not Redaction(True).covers(Platform(name))


def test_a_plug_in_platform_is_covered_when_it_says_so() -> None:
    assert Redaction(True).covers(Platform.register("redaction-safe", pii_safe=True))
    assert not Redaction(True).covers(Platform.register("redaction-silent"))


def test_discord_is_never_covered_even_when_registered_as_safe() -> None:
    # In a process of its own: what a plug-in registers cannot be taken back.
    script = (
        "from frontdesk.flow.redaction import Redaction\n"
        "from frontdesk.model.platforms import Platform\n"
        "print(Redaction(True).covers(Platform.register('discord', pii_safe=True)))\n"
    )
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert run.stdout == "False\n"


def test_ids_of_uncovered_platforms_stay() -> None:
    assert Redaction(True).user_id(Platform.DISCORD, "77") == "77"
    assert Redaction(True).chat_id(Platform.DISCORD, "77") == "77"


@pytest.mark.parametrize("name", [None, "", " ", "\u200b\x00"])
def test_a_name_without_anything_to_read_is_none(name: str | None) -> None:
    assert Redaction(False).name(Platform.SLACK, name, "U1") is None


def test_a_name_stays() -> None:
    assert Redaction(True).name(Platform.TELEGRAM, "Ann", "49151") == "Ann"


@pytest.mark.parametrize(
    ("platform", "name", "user_id"),
    [
        ("telegram", "49151", "49151"),
        ("signal", "+49151", "+49151"),
        ("signal", " 49151 ", "+49151"),
        ("whatsapp", "+49151", "49151:3@s.whatsapp.net"),
        ("whatsapp", "+49 151-234", "49151234"),
        ("whatsapp", "+49 (151) 234", "49151234@s.whatsapp.net"),
        ("signal", "+49 151/234", "+49151234"),
        ("telegram", "100.123", "-100123"),
        ("bluebubbles", "+49 151 234", "iMessage;-;+49151234"),
    ],
)
def test_a_name_that_repeats_the_id_is_none(platform: str, name: str, user_id: str) -> None:
    assert Redaction(True).name(Platform(platform), name, None, user_id) is None
    assert Redaction(False).name(Platform(platform), name, None, user_id) == name


@pytest.mark.parametrize("name", ["Ann 49151234", "+49 151-235", "007", "!!!"])
def test_name_that_says_more_than_the_id_or_something_else_stays(name: str) -> None:
    assert Redaction(True).name(Platform.WHATSAPP, name, "49151234") == name
    assert Redaction(True).name(Platform.WHATSAPP, name, "ann") == name


def topic_of(
    topic: str, platform: str = "whatsapp", wanted: bool = True, shared: bool = False, **ids: Any
) -> str | None:
    source = SessionSource(platform=Platform(platform), chat_type=ChatType.GROUP, chat_topic=topic, **ids)
    return Redaction(wanted).topic(source, shared=shared)


def test_ids_in_a_topic_are_hashed() -> None:
    ids: dict[str, Any] = {"chat_id": "-100123", "user_id": "4915@s.whatsapp.net"}
    chat, user = redaction.hash_chat(ids["chat_id"]), redaction.hash_user(ids["user_id"])
    hashed = topic_of("4915@s.whatsapp.net (+4915) in -100123.", **ids)
    assert hashed == f"{user} (+{user}) in {chat}."


def test_topic_of_a_shared_session_does_not_depend_on_who_speaks() -> None:
    shown = {topic_of("Ask 4915 or 77.", shared=True, chat_id="5", user_id=user) for user in ("4915", "77")}
    assert shown == {"Ask 4915 or 77."}


def test_longer_number_in_a_topic_is_not_the_id() -> None:
    assert topic_of("49151 and x49", chat_id="49") == "49151 and x49"


def test_ids_in_a_topic_stay_where_they_are_not_hashed() -> None:
    assert topic_of("see 49", chat_id="49", wanted=False) == "see 49"
    assert topic_of("see 49", "slack", chat_id="49") == "see 49"


def test_part_of_an_address_is_a_name() -> None:
    assert Redaction(True).name(Platform.BLUEBUBBLES, "ann", "ann@example.com") == "ann"
