"""A session's cookie lets somebody look. Whatever else they do takes the proof that signing in gave out."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages
from typing import Any
from uuid import uuid4

import httpx
import pytest
from msgspec.structs import replace

from frontdesk import web
from frontdesk.model.audit import AuditEntry
from frontdesk.web import endpoints, login
from frontdesk.web.confirmations.pages import OPERATIONS
from frontdesk.web.endpoints import ANYBODY, Served
from frontdesk.web.middleware import Hosts
from frontdesk.web.operations import LINK_FIELD, LOOKING, PROOF_HEADER, Operation, Proof, Table, Who
from frontdesk.web.repeats import RepeatedCalls
from frontdesk.web.visitors import COOKIE, MOST_COOKIES
from tests.integration.confirming import ASKED, TOKENS, Desk, opened, opened_pages, problem, served_app
from tests.integration.test_confirmations_pages import link_to, own, submitted

SECRET = "aB3dE5gH7jK9"


def all_rows() -> list[Operation]:
    """Of every table that there is."""
    modules = [import_module(each.name) for each in walk_packages(web.__path__, "frontdesk.web.")]
    values = {id(each): each for module in modules for each in vars(module).values()}
    return [row for each in values.values() if isinstance(each, Table) for row in each]


ROWS = all_rows()
VISITORS = [row for row in ROWS if row.who is Who.VISITOR and row.method not in LOOKING]
Session = tuple[str, str]
"""The cookie and the proof."""


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/state.db"
    return f"{request.getfixturevalue('postgres_url')}?schema=test_{uuid4().hex}"


@pytest.fixture
async def desk(url: str) -> AsyncIterator[Desk]:
    """The pages, of a service in a database that is really there."""
    async with opened(url) as served, opened_pages(service=served.service) as shown:
        yield shown


async def signed_in(desk: Desk, name: str = "ann", **headers: str) -> Session:
    """A session in a browser of its own."""
    desk.http.cookies.clear()
    body, sent = {"token": TOKENS[name]}, own(desk) | headers
    answer = (await desk.http.post("/login", json=body, headers=sent)).raise_for_status()
    cookie = desk.http.cookies[COOKIE]
    desk.http.cookies.clear()
    return cookie, answer.json()["proof"]


def carrying(cookie: str | None, proof: str | None = None) -> dict[str, str]:
    headers = {"cookie": f"{COOKIE}={cookie}"} if cookie is not None else {}
    return headers | ({PROOF_HEADER: proof} if proof is not None else {})


async def post(desk: Desk, path: str, headers: Any, **body: Any) -> httpx.Response:
    return await desk.http.post(f"/approvals/{path}", json=body, headers=own(desk) | headers)


async def leave(desk: Desk, headers: Any, **body: Any) -> httpx.Response:
    return await desk.http.post("/login/end", json=body, headers=own(desk) | headers)


async def approve(desk: Desk, asked: Any, headers: Any, **more: Any) -> httpx.Response:
    said = {"approves": True, "digest": asked.digest} | more
    return await post(desk, f"{asked.id}/decision", headers, **said)


async def refusals(desk: Desk) -> list[AuditEntry]:
    rows = [row.entry for row in await desk.service.audit_newest(500)]
    return [entry for entry in reversed(rows) if entry.kind == "refused"]


async def test_cookie_alone_looks_and_does_nothing_else(desk: Desk) -> None:
    asked = await submitted(desk, details={"to": "a@example.org", "password": SECRET})
    cookie, proof = await signed_in(desk)
    for path in ("/approvals", f"/approvals/{asked.id}"):
        assert (await desk.http.get(path, headers=carrying(cookie))).status_code == 200
    for _ in range(3):
        assert "Sign in again" in problem(await approve(desk, asked, carrying(cookie)), 401)["detail"]
    problem(await approve(desk, asked, carrying(cookie), approves=False), 401)
    told = await post(desk, f"{asked.id}/reveal", carrying(cookie))
    assert SECRET not in problem(told, 401)["detail"]
    problem(await leave(desk, carrying(cookie)), 401)
    assert (await desk.http.get("/approvals", headers=carrying(cookie))).status_code == 200, (
        "nobody signed out"
    )
    assert await desk.status(asked.id) == "pending"
    assert [(entry.actor, entry.facts["why"].partition(":")[0]) for entry in await refusals(desk)] == [
        ("token:ann", "decide"),
        ("token:ann", "reveal"),
        ("token:ann", "sign_out"),
    ]
    seen = await post(desk, f"{asked.id}/reveal", carrying(cookie, proof))
    decided = await approve(desk, asked, carrying(cookie, proof), seen=seen.json()["seen"])
    assert decided.json()["status"] == "approved"


async def test_proof_counts_with_its_own_session_alone(desk: Desk) -> None:
    asked = await submitted(desk)
    cookie, proof = await signed_in(desk)
    other_cookie, other_proof = await signed_in(desk)
    eves_cookie, eves_proof = await signed_in(desk, "eve")
    gone_cookie, gone_proof = await signed_in(desk)
    assert (await leave(desk, carrying(gone_cookie, gone_proof))).status_code == 200
    link = link_to(asked).partition("t=")[2]
    wrong = [other_proof, eves_proof, gone_proof, link, cookie, TOKENS["ann"], "", ".", "1"]
    wrong += [
        proof[:-1],
        proof + "A",
        proof.swapcase(),
        f"{cookie}.{proof}",
        f"{proof}, {proof}",
        f"{proof};",
    ]
    for each in wrong:
        problem(await approve(desk, asked, carrying(cookie, each)), 401)
    for held in (None, "", eves_cookie, other_cookie, gone_cookie, proof, f"{cookie}.{proof}"):
        problem(await approve(desk, asked, carrying(held, proof)), 401)
    problem(await approve(desk, asked, carrying(gone_cookie, gone_proof)), 401)
    twice = [*(own(desk) | carrying(cookie, proof)).items(), (PROOF_HEADER, other_proof)]
    body = {"approves": True, "digest": asked.digest}
    problem(await desk.http.post(f"/approvals/{asked.id}/decision", json=body, headers=twice), 401)
    assert await desk.status(asked.id) == "pending"
    assert (await approve(desk, asked, carrying(cookie, proof))).status_code == 200


async def test_proof_is_in_the_answer_to_signing_in_and_nowhere_else(desk: Desk) -> None:
    asked = await submitted(desk, details={"to": "a@example.org", "password": SECRET})
    answer = await desk.http.post("/login", json={"token": TOKENS["ann"]}, headers=own(desk))
    proof = answer.json()["proof"]
    signature = proof
    assert len(signature) == 43, "256 bits"
    assert signature not in str(answer.headers)
    cookie = desk.http.cookies[COOKIE]
    again, _ = await signed_in(desk, cookie=f"{COOKIE}=junk")
    assert again != cookie
    for row in OPERATIONS:
        if row.method == "GET" and not row.path.endswith("/events"):
            path = row.path.replace("{id}", asked.id)
            for method in LOOKING:
                shown = await desk.http.request(method, path, headers=carrying(cookie, proof))
                assert signature not in shown.text + str(shown.headers)
    seen = await post(desk, f"{asked.id}/reveal", carrying(cookie, proof))
    assert signature not in seen.text + str(seen.headers)


async def test_signing_in_ends_the_session_whose_cookie_came_along(desk: Desk) -> None:
    old, old_proof = await signed_in(desk)
    other, _ = await signed_in(desk)
    for name, is_proven in (("ann", False), ("eve", True)):  # somebody else shows its proof
        sent = carrying(old, old_proof if is_proven else None)
        new, new_proof = await signed_in(desk, name, **sent)
        assert (await desk.http.get("/approvals", headers=carrying(old))).status_code == 401
        problem(await leave(desk, carrying(old, old_proof)), 401)
        assert (await desk.http.get("/approvals", headers=carrying(new))).status_code == 200
        old, old_proof = new, new_proof
    assert (await desk.http.get("/approvals", headers=carrying(other))).status_code == 200
    wrong = {"token": TOKENS["ann"] + "x"}
    sent = own(desk) | carrying(other)
    problem(await desk.http.post("/login", json=wrong, headers=sent), 401)
    assert (await desk.http.get("/approvals", headers=carrying(other))).status_code == 200, "a wrong token"


async def test_cookies_that_another_port_adds_lend_no_session_and_keep_no_proof_from_counting(
    desk: Desk,
) -> None:
    """Every port of the host can set a cookie of our name, for another path or for ours."""
    asked = await submitted(desk)
    cookie, proof = await signed_in(desk)
    eves, _ = await signed_in(desk, "eve")
    junk = "0123.junk"
    for several in ([junk, cookie], [cookie, junk], [eves, junk, cookie], [cookie, eves]):
        headers = {"cookie": "; ".join(f"{COOKIE}={each}" for each in several)}
        shown = await desk.http.get("/approvals", headers=headers)
        assert shown.status_code == (401 if eves in several else 200), "whose page it is nobody can tell"
        problem(await approve(desk, asked, headers), 401)
        other = await submitted(desk, details={"with": several})
        assert (await approve(desk, other, headers | {PROOF_HEADER: proof})).status_code == 200
        assert (await desk.service.find(other.id)).resolved_by == "token:ann"
    for name in (COOKIE.upper(), f"__Host-{COOKIE}", f"{COOKIE} x", "frontdesk_approver", f"{COOKIE}[0]"):
        problem(await approve(desk, asked, {"cookie": f"{name}={cookie}", PROOF_HEADER: proof}), 401)
    many = "; ".join(f"{COOKIE}={each}" for each in [*[junk] * MOST_COOKIES, cookie])
    problem(await approve(desk, asked, {"cookie": many, PROOF_HEADER: proof}), 401)
    assert await desk.status(asked.id) == "pending"


async def test_link_proves_what_it_names_and_nothing_else(desk: Desk) -> None:
    asked, other = await submitted(desk), await submitted(desk, details={"to": "b@example.org"})
    cookie, proof = await signed_in(desk, "eve")
    link = link_to(asked).partition("t=")[2]
    for headers in (carrying(cookie), carrying(cookie, proof), {}):
        problem(await approve(desk, other, headers, t=link), 403)
        problem(await post(desk, f"{other.id}/reveal", headers, t=link), 403)
        for forged in ("", "forged", proof, cookie):
            problem(await approve(desk, asked, headers, t=forged), 403)
    odds: list[Any] = [0, False, [], {}, [link]]
    for odd in odds:
        problem(await approve(desk, asked, carrying(cookie), t=odd), 400)
    problem(await leave(desk, carrying(cookie), t=link), 401)
    assert [await desk.status(each.id) for each in (asked, other)] == ["pending", "pending"]
    assert (await approve(desk, asked, carrying(cookie), t=link)).status_code == 200
    assert (await desk.service.find(asked.id)).resolved_by == "token:ann", "the link's, not the cookie's"


@pytest.mark.parametrize("row", VISITORS, ids=lambda row: row.name)
async def test_every_row_for_visitors_that_does_not_look_takes_the_proof(row: Operation) -> None:
    """Sign-in aside, which gives it out: with the cookie alone each is refused as such, whatever its body."""
    assert row.needs_proof or row.proof is Proof.SIGN_IN
    if row.proof is Proof.LINK:
        assert row.body is not None
        assert LINK_FIELD in row.body.__struct_fields__
    async with opened_pages() as desk, AsyncExitStack() as stack:
        asked = await submitted(desk)
        cookie, _ = await signed_in(desk)
        path, shown = row.path.replace("{id}", asked.id), desk
        if row not in [*OPERATIONS, *login.OPERATIONS]:  # served with others, and refused as early
            never = RepeatedCalls(None, None)  # type: ignore[arg-type]
            served = [Served([row], None, visit=desk.app.visit, repeats=never)]
            app = endpoints.make_app(served, Hosts("127.0.0.1"), ("", ""))
            shown = replace(desk, http=await stack.enter_async_context(served_app(app)))
        bodies: list[Any] = [{}, {LINK_FIELD: None}, {"approves": True, "digest": asked.digest}]
        for body in bodies:
            sent = own(shown) | carrying(cookie)
            answer = await shown.http.request(row.method, path, json=body, headers=sent)
            if row.proof is Proof.SIGN_IN:
                assert (row.path, answer.status_code) == ("/login", 400)
            else:
                assert "Sign in again" in problem(answer, 401)["detail"]
        assert await desk.status(asked.id) == "pending"


def test_one_row_alone_gives_the_proof_out() -> None:
    assert [row.name for row in ROWS if row.proof is Proof.SIGN_IN] == ["sign_in"]
    assert len(VISITORS) >= 5
    assert all(row in ROWS for row in OPERATIONS)


def test_row_for_visitors_is_not_served_where_nobody_looks_at_the_proof() -> None:
    table = Table(who=Who.VISITOR)
    table.add("POST", "/secret")(lambda *_: None)
    served = Served(table, None, lambda *_: ANYBODY)
    with pytest.raises(ValueError, match="/secret is for a visitor, and nobody looks at credentials"):
        endpoints.make_app([served], Hosts("127.0.0.1"), ("", ""))


async def test_document_says_which_addresses_take_the_proof() -> None:
    async with opened_pages() as desk:
        told = (await desk.http.get("/openapi.json")).json()
    wanted = {
        (path, method): each["security"]
        for path, methods in told["paths"].items()
        for method, each in methods.items()
    }
    both: dict[str, list[str]] = {"session": [], "proof": []}
    assert wanted["/login", "post"] == []
    token: dict[str, list[str]] = {"token": []}
    assert wanted["/login/end", "post"] == [both, token]
    assert wanted["/approvals/{id}/decision", "post"] == [both, token, {}]
    assert wanted["/approvals/{id}", "get"] == [{"session": []}, token]
    assert told["components"]["securitySchemes"]["proof"]["name"] == PROOF_HEADER


async def test_service_takes_neither_cookie_nor_proof() -> None:
    async with opened() as desk, opened_pages(service=desk.service) as shown:
        asked = (await desk.http.post("/confirm", json=ASKED)).json()
        cookie, proof = await signed_in(shown)
        for headers in (carrying(cookie, proof), {"authorization": f"Bearer {proof}"}):
            problem(await desk.http.post(asked["approve_url"], json={}, headers=headers), 401)
        assert await desk.status(asked["id"]) == "pending"
