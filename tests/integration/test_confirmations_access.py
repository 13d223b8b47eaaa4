"""Who may ask, see, decide and redeem; and everybody who tries to decide without being an approver."""

from collections.abc import AsyncIterator, Iterator
from datetime import timedelta
from typing import Any

import pytest

from frontdesk import errors
from frontdesk.formats import links
from frontdesk.model.confirmations import Mode
from frontdesk.web.confirmations import Credentials
from tests import counts
from tests.integration.confirming import (
    ANN,
    ASKED,
    BOT,
    EVE,
    LINK_KEY,
    ROB,
    STRICTER,
    TOKENS,
    Desk,
    bearer,
    opened,
    opened_pages,
    problem,
)

LEAST_TRIES = 200

GARBAGE: list[bytes] = [
    b"",
    b"Bearer",
    b"Bearer wrong",
    b"Bearer \xff\xfe",
    b"Bearer \xc3\xbc\xc3\xa4",
    "Bearer 口令".encode(),
    b"Bearer " + b"x" * 4000,
    b"Bearer null",
    b"Bearer undefined",
    b"Basic YW5uOmFubg==",
    b"basic " + TOKENS["ann"].encode(),
    b"Token " + TOKENS["ann"].encode(),
    b"Bearer" + TOKENS["ann"].encode(),
    b"Bearer " + TOKENS["ann"][:-1].encode(),
    b"Bearer " + TOKENS["ann"].encode() + b"x",
    b"Bearer " + TOKENS["ann"].upper().encode(),
    b"Bearer token:ann",
    b"Bearer ann",
    b'Bearer "' + TOKENS["ann"].encode() + b'"',
    b"Bearer " + TOKENS["ann"].encode() + b", Bearer " + TOKENS["ann"].encode(),
]


@pytest.fixture
async def desk() -> AsyncIterator[Desk]:
    async with opened() as opened_desk:
        yield opened_desk


async def test_garbage_for_a_token_is_a_clean_401(desk: Desk) -> None:
    for given in GARBAGE:
        answer = await desk.http.get("/audit", headers=[(b"authorization", given)])
        problem(answer, 401)
        assert answer.headers["www-authenticate"].startswith("Bearer")


async def test_garbage_for_a_token_is_not_taken_for_nobody(desk: Desk) -> None:
    """In mode solo no token is fine, a wrong one is not."""
    for given in GARBAGE:
        problem(await desk.http.post("/confirm", json=ASKED, headers=[(b"authorization", given)]), 401)
    assert await desk.service.pending_count() == 0


async def test_two_tokens_are_none(desk: Desk) -> None:
    given = [("authorization", ANN["authorization"]), ("authorization", EVE["authorization"])]
    problem(await desk.http.get("/audit", headers=given), 401)


APPROVERS_ONLY = [
    ("GET", "/confirm"),
    ("GET", "/audit"),
    ("GET", "/audit?view=events"),
    ("GET", "/events"),
    ("GET", "/rules"),
    ("POST", "/rules"),
    ("DELETE", "/rules/r_1"),
    ("POST", "/confirm/c_1/reveal"),
]


@pytest.mark.parametrize("mode", Mode)
async def test_approvers_matters_are_nobody_elses(mode: Mode) -> None:
    async with opened(mode=mode) as desk:
        for method, path in APPROVERS_ONLY:
            problem(await desk.http.request(method, path), 401)
            problem(await desk.http.request(method, path, headers=BOT), 403)


@pytest.mark.parametrize("mode", STRICTER)
async def test_asking_takes_an_agents_token_in_a_team(mode: Mode) -> None:
    async with opened(mode=mode) as desk:
        problem(await desk.http.post("/confirm", json=ASKED), 401)
        problem(await desk.http.post("/confirm", json=ASKED, headers=ANN), 403)
        asked = await desk.ask(BOT)
        problem(await desk.http.get(f"/confirm/{asked['id']}"), 401)
        assert (await desk.http.get(f"/confirm/{asked['id']}", headers=ANN)).status_code == 200


SECRET: dict[str, Any] = {"details": {"to": "press@example.org", "password": "hunter2"}}


async def test_agents_and_requesters_reveal_nothing() -> None:
    async with opened(mode=Mode.SOLO) as desk:
        for who in (None, BOT):
            asked = await desk.ask(who, **SECRET)
            for headers, status in ((None, 401), (BOT, 403), (ROB, 403)):
                answer = await desk.http.post(f"/confirm/{asked['id']}/reveal", headers=headers)
                assert "hunter2" not in str(problem(answer, status))
        assert {row.entry.kind for row in await desk.service.audit_newest(100)} == {"submitted", "refused"}


async def test_approver_who_may_not_decide_reveals_nothing() -> None:
    async with opened(mode=Mode.TEAM) as desk:
        rule = {"effect": "ask", "action": "send_mail", "approvers": ["token:eve"]}
        assert (await desk.http.post("/rules", json=rule, headers=EVE)).status_code == 201
        asked = await desk.ask(BOT, **SECRET)
        problem(await desk.http.post(f"/confirm/{asked['id']}/reveal", headers=ANN), 403)
        assert (await desk.http.post(f"/confirm/{asked['id']}/reveal", headers=EVE)).status_code == 200


async def test_health_and_document_are_for_everybody() -> None:
    async with opened(mode=Mode.STRICT) as desk:
        assert (await desk.http.get("/health")).status_code == 200
        assert (await desk.http.get("/openapi.json")).status_code == 200


@pytest.mark.parametrize("header", ["x-forwarded-for", "forwarded", "x-real-ip", "via"])
async def test_what_a_proxy_passes_on_does_not_come_from_this_machine(desk: Desk, header: str) -> None:
    problem(await desk.http.post("/confirm", json=ASKED, headers={header: "127.0.0.1"}), 401)


async def test_solo_agents_with_a_token_keep_theirs_for_themselves(desk: Desk) -> None:
    asked = await desk.ask(BOT)
    problem(await desk.http.get(f"/confirm/{asked['id']}"), 404)
    problem(await desk.http.get(f"/confirm/{asked['id']}", headers=ROB), 404)
    await desk.http.post(asked["approve_url"], headers=ANN)
    body = {"digest": asked["digest"]}
    problem(await desk.http.post(f"/confirm/{asked['id']}/redeem", json=body), 404)
    problem(await desk.http.post(f"/confirm/{asked['id']}/redeem", json=body, headers=ROB), 404)
    assert (await desk.http.post(f"/confirm/{asked['id']}/redeem", json=body, headers=BOT)).status_code == 200


async def test_agent_with_a_token_does_not_see_what_nobody_asked_for(desk: Desk) -> None:
    asked = await desk.ask()
    problem(await desk.http.get(f"/confirm/{asked['id']}", headers=BOT), 404)


@pytest.mark.parametrize(
    "name",
    [
        "token:bot",
        " token:bot",
        "TOKEN:ann",
        "agent:main:matrix:dm:1",
        "token\N{FULLWIDTH COLON}ann",
        "token\N{RATIO}ann",
        "\N{CIRCLED LATIN SMALL LETTER L}ocal",
        "Loca1",
    ],
)
async def test_nobody_takes_the_name_of_somebody_whom_we_know(desk: Desk, name: str) -> None:
    problem(await desk.http.post("/confirm", json=ASKED | {"requester": name}), 400)


SAME = "the-same-0123456789abcdef"


async def test_token_of_both_an_agent_and_an_approver_is_an_agents() -> None:
    shared = Credentials(approvers={"ann": lambda: SAME}, agents={"bot": lambda: SAME})
    async with opened(known=shared) as desk:
        asked = await desk.ask()
        headers = {"authorization": f"Bearer {SAME}"}
        problem(await desk.http.post(asked["approve_url"], headers=headers), 403)
        assert await desk.status(asked["id"]) == "pending"


async def test_empty_or_missing_secret_is_nobodys_token() -> None:
    def missing() -> str:
        raise errors.MissingSecret(where="nowhere", setting="x")

    bare = Credentials(approvers={"ann": lambda: "", "eve": lambda: " \n", "joe": missing})
    async with opened(known=bare) as desk:
        asked = await desk.ask()
        for given in (b"Bearer", b"", b"Bearer x"):
            headers = [(b"authorization", given)]
            problem(await desk.http.post(asked["approve_url"], headers=headers), 401)


async def test_token_may_be_kept_as_its_digest() -> None:
    secret = "secret-secret-secret-secret"
    digest = "sha256:92560f1501f70b98f0a6c27196a5bf717917038c3a6646a2cca0824b8a135d86"
    async with opened(known=Credentials(approvers={"ann": lambda: digest})) as desk:
        asked = await desk.ask()
        for given, status in ((digest, 401), (secret, 200)):
            headers = {"authorization": f"Bearer {given}"}
            assert (await desk.http.post(asked["approve_url"], headers=headers)).status_code == status


async def test_changed_token_counts_from_the_next_request_on() -> None:
    tokens = [f"{each}-0123456789abcdef" for each in ("first", "second")]
    first, second = ({"authorization": f"Bearer {each}"} for each in tokens)
    async with opened(known=Credentials(approvers={"ann": lambda: tokens[0]})) as desk:
        assert (await desk.http.get("/audit", headers=first)).status_code == 200
        tokens.reverse()
        problem(await desk.http.get("/audit", headers=first), 401)
        assert (await desk.http.get("/audit", headers=second)).status_code == 200


def unentitled() -> Iterator[dict[str, Any]]:
    """Ways to ask for a decision without being somebody who may decide."""
    yield {}
    for headers in (BOT, ROB, bearer("bot") | {"x-approver": "ann"}):
        yield {"headers": headers}
    for given in GARBAGE:
        yield {"headers": [(b"authorization", given)]}
    for body in (
        {"approver": "token:ann"},
        {"denier": "token:ann"},
        {"approver": "ann", "reason": "please"},
        {"token": TOKENS["ann"]},
        {"authorization": ANN["authorization"]},
        {"resolved_by": "token:ann"},
    ):
        yield {"json": body}
        yield {"json": body, "headers": BOT}
    for query in ("token", "access_token", "authorization", "approver", "t"):
        yield {"params": {query: TOKENS["ann"]}}
    for cookie in ("frontdesk", "authorization", "token"):
        yield {"headers": {"cookie": f"{cookie}={TOKENS['ann']}"}}
    for header in ("x-api-key", "x-auth-token", "proxy-authorization", "x-forwarded-user", "remote-user"):
        yield {"headers": {header: ANN["authorization"]}}


async def test_decisions_of_everybody_who_may_not_decide_are_refused(
    tell: counts.Tell,
) -> None:
    tries = accepted = 0
    for mode in Mode:
        async with opened(mode=mode) as desk:
            asked = await desk.ask(BOT)
            for attempt in unentitled():
                for verb in ("approve", "deny"):
                    answer = await desk.http.post(f"/confirm/{asked['id']}/{verb}", **attempt)
                    tries += 1
                    accepted += answer.status_code not in (400, 401, 403)
                    assert answer.status_code in (400, 401, 403), (mode, attempt)
            assert await desk.status(asked["id"]) == "pending"
            pages = await _forged(desk, asked)
            tries, accepted = tries + pages[0], accepted + pages[1]
    tell("decisions without being entitled: none was accepted", tries)
    assert tries >= LEAST_TRIES
    assert accepted == 0


async def _forged(desk: Desk, asked: dict[str, Any]) -> tuple[int, int]:
    """Tries with links that were made for others, for something else, by others, or too early."""
    confirmation = await desk.service.find(asked["id"])
    late = confirmation.created_at - timedelta(seconds=1)
    soon = confirmation.expires_at
    about = (confirmation.id, confirmation.digest)
    tokens = [
        links.sign(b"x" * 32, links.decision(*about, "token:ann", soon)),
        links.sign(LINK_KEY, links.decision("c_other", about[1], "token:ann", soon)),
        links.sign(LINK_KEY, links.decision(about[0], "0" * 64, "token:ann", soon)),
        links.sign(LINK_KEY, links.decision(*about, "token:ann", late)),
        links.sign(LINK_KEY, links.decision(*about, "token:bot", soon)),
        links.sign(LINK_KEY, links.decision(*about, "token:nobody", soon)),
        links.sign(LINK_KEY, links.look(*about, "token:ann", soon)),
        "",
        "garbage",
        TOKENS["ann"],
    ]
    tries = accepted = 0
    async with opened_pages(service=desk.service) as pages:
        own = {"x-frontdesk-page": "1", "origin": str(pages.http.base_url).rstrip("/")}
        for token in tokens:
            for approves in (True, False):
                body = {"approves": approves, "digest": about[1], "t": token}
                answer = await pages.http.post(f"/approvals/{about[0]}/decision", json=body, headers=own)
                tries += 1
                accepted += answer.status_code not in (401, 403)
                problem(answer, 403)
    assert await desk.status(asked["id"]) == "pending"
    return tries, accepted


async def test_replayed_decision_changes_nothing(desk: Desk) -> None:
    asked = await desk.ask()
    body = {"digest": asked["digest"]}
    assert (await desk.http.post(asked["deny_url"], headers=ANN, json=body)).status_code == 200
    for _ in range(10):
        problem(await desk.http.post(asked["approve_url"], headers=ANN, json=body), 409)
    assert await desk.status(asked["id"]) == "denied"
