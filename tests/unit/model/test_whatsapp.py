"""WhatsApp identities: phone JID, LID and device suffix name one person."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frontdesk import errors
from frontdesk.model import keys, people
from frontdesk.model.platforms import Platform
from frontdesk.model.sources import ChatType, SessionSource
from frontdesk.model.whatsapp import (
    canonical_whatsapp_identifier,
    check_whatsapp_identifier,
    normalize_whatsapp_identifier,
)
from tests.unit.model import strategies

PHONE = "4915112345678"
LID = "198273645546372"
ALIASES = {LID: PHONE}
PHONE_FORMS = [
    PHONE,
    f"+{PHONE}",
    f" {PHONE} ",
    f"{PHONE}@s.whatsapp.net",
    f"{PHONE}:12@s.whatsapp.net",
    f"{PHONE}@c.us",
    f"+{PHONE}@s.whatsapp.net",
    int(PHONE),
]
LID_FORMS = [LID, f"{LID}@lid", f"{LID}:3@lid", int(LID)]


def direct(chat_id: object, **fields: object) -> SessionSource:
    return SessionSource(platform=Platform.WHATSAPP, chat_id=chat_id, **fields)  # type: ignore[arg-type]


@pytest.mark.parametrize("form", PHONE_FORMS)
def test_every_form_of_a_phone_number_is_the_number(form: object) -> None:
    assert normalize_whatsapp_identifier(form) == PHONE
    assert check_whatsapp_identifier(form) == PHONE


@pytest.mark.parametrize("form", LID_FORMS)
def test_learned_lid_is_the_phone_number(form: object) -> None:
    assert canonical_whatsapp_identifier(form, ALIASES) == PHONE


@pytest.mark.parametrize("name", ["1", "1@lid", "222", "333"])
def test_table_is_walked_to_its_end(name: str) -> None:
    assert canonical_whatsapp_identifier(name, {"1": "222", "222": "333"}) == "333"


@pytest.mark.parametrize("name", ["1", "2", "3", "4"])
def test_circle_of_names_is_one_person(name: str) -> None:
    assert canonical_whatsapp_identifier(name, {"1": "2", "2": "3", "3": "2", "4": "1"}) == "2"


def test_name_that_leads_to_itself_is_itself() -> None:
    assert canonical_whatsapp_identifier("1", {"1": "1"}) == "1"


@pytest.mark.parametrize("aliases", [None, {}, {"1": "2"}])
def test_lid_nobody_learned_stands_for_itself(aliases: dict[str, str] | None) -> None:
    assert canonical_whatsapp_identifier(f"{LID}@lid", aliases) == LID


@pytest.mark.parametrize("nothing", [None, "", " ", "@lid", ":4@s.whatsapp.net", "+"])
def test_what_names_nobody_is_empty(nothing: object) -> None:
    assert normalize_whatsapp_identifier(nothing) == ""
    assert canonical_whatsapp_identifier(nothing, ALIASES) == ""


@pytest.mark.parametrize("wrong", [None, "", "@lid", "abc", "1a@lid", "12-34@g.us", "٣"])
def test_only_numbers_can_be_learned(wrong: object) -> None:
    with pytest.raises(errors.InvalidInput, match="must be a number"):
        check_whatsapp_identifier(wrong)


@given(st.text() | st.text(alphabet="+@: 1"))
def test_normal_form_is_stable(text: str) -> None:
    once = normalize_whatsapp_identifier(text)
    assert normalize_whatsapp_identifier(once) == once


@pytest.mark.parametrize("form", [*PHONE_FORMS, *LID_FORMS])
def test_direct_chat_has_one_key_under_every_form(form: object) -> None:
    key = keys.build_session_key(direct(form), aliases=ALIASES)
    assert key == f"agent:main:whatsapp:dm:{PHONE}"


@pytest.mark.parametrize("field", ["user_id", "user_id_alt"])
@pytest.mark.parametrize("form", [*PHONE_FORMS, *LID_FORMS])
def test_group_participant_has_one_key_under_every_form(form: object, field: str) -> None:
    source = direct("120363@g.us", chat_type="group", **{field: form})
    key = keys.build_session_key(source, aliases=ALIASES)
    assert key == f"agent:main:whatsapp:group:120363@g.us:{PHONE}"


@pytest.mark.parametrize("form", [*PHONE_FORMS, *LID_FORMS])
def test_permissions_use_the_same_person_as_keys(form: object) -> None:
    by_user = people.Principal.of(direct("1@g.us", chat_type="group", user_id=form), ALIASES)
    by_chat = people.Principal.of(direct(form), ALIASES)
    assert by_user == by_chat == people.Principal(platform=Platform.WHATSAPP, user_id=PHONE)


@pytest.mark.parametrize("group", ["120363@g.us", "4915-1634@g.us", LID, f"{LID}@lid"])
def test_group_ids_stay_as_they_are(group: str) -> None:
    source = direct(group, chat_type="group")
    assert keys.build_session_key(source, aliases=ALIASES) == f"agent:main:whatsapp:group:{group}"


def test_direct_chat_that_names_nobody_falls_back_to_the_participant() -> None:
    source = direct("@lid", user_id=f"{LID}@lid")
    where = keys.address(source, aliases=ALIASES)
    assert where.key == f"agent:main:whatsapp:dm:{PHONE}"
    assert where.rule is keys.KeyRule.DM_PARTICIPANT


def test_participant_that_names_nobody_leaves_the_group_shared() -> None:
    where = keys.address(direct("1@g.us", chat_type="group", user_id="@lid"), aliases=ALIASES)
    assert where.key == "agent:main:whatsapp:group:1@g.us"
    assert where.rule is keys.KeyRule.SHARED_CHAT


@given(strategies.sources(platform=st.just(Platform.SLACK)))
def test_aliases_mean_nothing_on_other_platforms(source: SessionSource) -> None:
    aliases = {source.chat_id: "other", source.participant or "": "other"}
    assert keys.address(source, aliases=aliases) == keys.address(source)


@given(st.sampled_from(ChatType), st.sampled_from(PHONE_FORMS), st.sampled_from(LID_FORMS), st.booleans())
def test_identity_flip_never_moves_a_person(chat: ChatType, phone: object, lid: object, thread: bool) -> None:
    fields = {"chat_type": chat, "thread_id": "t" if thread else None}
    before = direct(phone if chat is ChatType.DM else "g@g.us", user_id=phone, **fields)
    after = direct(lid if chat is ChatType.DM else "g@g.us", user_id=lid, **fields)
    where = keys.address(before, True, True, aliases=ALIASES)
    assert keys.address(after, True, True, aliases=ALIASES) == where
    assert people.owner_of(after, where, ALIASES) == people.owner_of(before, where, ALIASES)
    assert people.viewer_of(after, where, ALIASES) == people.viewer_of(before, where, ALIASES)
