"""Webhook signatures: the sender is proven, the body unchanged, the request fresh."""

import base64
import json
from datetime import UTC, datetime, timedelta

import pytest
import standardwebhooks
from hypothesis import given
from hypothesis import strategies as st

from frontdesk import errors
from frontdesk.formats import webhooks

KEY = b"sixteen bytes or more of it"
SECRET = "whsec_" + base64.b64encode(KEY).decode()
OTHER = "whsec_" + base64.b64encode(KEY[::-1]).decode()
BODY = '{"text":"Grüße"}'.encode()
NOW = datetime(2026, 1, 5, 12, 0, tzinfo=UTC)


def headers(secret: str = SECRET, *, at: datetime = NOW, body: bytes = BODY) -> dict[str, str]:
    return webhooks.signed_headers(secret, "msg_1", at, body)


def test_signed_request_is_verified_and_gives_its_id() -> None:
    assert webhooks.verify([SECRET], headers(), BODY, now=NOW) == "msg_1"


@given(body=st.binary(), secret=st.text(st.characters(codec="utf-8"), min_size=16))
def test_whatever_is_signed_is_verified(body: bytes, secret: str) -> None:
    raw = "raw:" + secret
    assert webhooks.verify([raw], headers(raw, body=body), body, now=NOW) == "msg_1"


@pytest.mark.parametrize("secret", [SECRET, SECRET.rstrip("=")])
def test_official_library_verifies_what_we_sign(secret: str) -> None:
    signed = headers(at=datetime.now(UTC))
    assert standardwebhooks.Webhook(secret).verify(BODY, signed) == json.loads(BODY)


def test_official_library_verifies_what_we_sign_with_a_raw_secret() -> None:
    signed = headers(KEY.decode(), at=datetime.now(UTC))
    assert standardwebhooks.Webhook(KEY).verify(BODY, signed) == json.loads(BODY)


@pytest.mark.parametrize("secret", [SECRET, KEY.decode()])
def test_we_verify_what_the_official_library_signs(secret: str) -> None:
    signature = standardwebhooks.Webhook(KEY).sign("msg_1", NOW, BODY.decode())
    given_headers = {**headers(), webhooks.SIGNATURE: signature}
    assert webhooks.verify([secret], given_headers, BODY, now=NOW) == "msg_1"


def test_each_secret_of_a_rotation_is_good() -> None:
    for used in (SECRET, OTHER):
        assert webhooks.verify([SECRET, OTHER], headers(used), BODY, now=NOW)


def test_one_good_signature_among_others_is_enough() -> None:
    several = " ".join(("v1a,AAAA", "v1,AAAA", "", headers()[webhooks.SIGNATURE], "v2,é"))
    assert webhooks.verify([SECRET], {**headers(), webhooks.SIGNATURE: several}, BODY, now=NOW)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        (webhooks.ID, "msg_2"),
        (webhooks.TIMESTAMP, str(int(NOW.timestamp()) + 1)),
        (webhooks.SIGNATURE, "v1,AAAA"),
        (webhooks.SIGNATURE, "v1,é\udc80"),
        (webhooks.SIGNATURE, "v1,"),
    ],
)
def test_changed_header_is_refused(name: str, value: str) -> None:
    with pytest.raises(errors.SignatureWrong):
        webhooks.verify([SECRET], {**headers(), name: value}, BODY, now=NOW)


def test_changed_body_is_refused() -> None:
    with pytest.raises(errors.SignatureWrong):
        webhooks.verify([SECRET], headers(), BODY + b" ", now=NOW)


def test_another_secret_is_refused() -> None:
    with pytest.raises(errors.SignatureWrong):
        webhooks.verify([SECRET], headers(OTHER), BODY, now=NOW)


def test_nothing_is_verified_without_a_secret() -> None:
    with pytest.raises(errors.SignatureWrong):
        webhooks.verify([], headers(), BODY, now=NOW)


@pytest.mark.parametrize("name", [webhooks.ID, webhooks.TIMESTAMP, webhooks.SIGNATURE])
def test_missing_header_is_named(name: str) -> None:
    lacking = {each: value for each, value in headers().items() if each != name}
    with pytest.raises(errors.SignatureMissing, match=name):
        webhooks.verify([SECRET], lacking, BODY, now=NOW)


@pytest.mark.parametrize("timestamp", ["", " 1", "1.5", "-1", "١", "1" * 13, "NaN", "0x1"])
def test_timestamp_that_is_no_number_of_seconds_is_refused(timestamp: str) -> None:
    with pytest.raises(errors.SignatureMissing, match=webhooks.TIMESTAMP):
        webhooks.verify([SECRET], {**headers(), webhooks.TIMESTAMP: timestamp}, BODY, now=NOW)


@pytest.mark.parametrize("message_id", ["", "a b", "é", "a\n", "x" * 257])
def test_id_that_is_not_plain_is_refused(message_id: str) -> None:
    with pytest.raises(errors.SignatureMissing, match=webhooks.ID):
        webhooks.verify([SECRET], {**headers(), webhooks.ID: message_id}, BODY, now=NOW)


@pytest.mark.parametrize("seconds", [-300, 300])
def test_request_within_five_minutes_is_fresh(seconds: int) -> None:
    assert webhooks.verify([SECRET], headers(), BODY, now=NOW + timedelta(seconds=seconds))


@pytest.mark.parametrize("seconds", [-301, 301])
def test_request_beyond_five_minutes_is_stale(seconds: int) -> None:
    with pytest.raises(errors.SignatureStale, match="301 seconds"):
        webhooks.verify([SECRET], headers(), BODY, now=NOW + timedelta(seconds=seconds))


@pytest.mark.parametrize("secret", ["", "short", "whsec_", "whsec_c2hvcnQ=", "whsec_*not base64*", "whsec_é"])
def test_unusable_secret_is_refused_and_not_repeated(secret: str) -> None:
    with pytest.raises(errors.InvalidInput) as refused:
        webhooks.sign(secret, "msg_1", 1, BODY)
    assert len(secret) < 6 or secret[6:] == "" or secret[6:] not in str(refused.value)
