"""Tokens over real HTTP: short ones are nobody's, and guessing them is slow for each address."""

import hashlib
import secrets
from functools import partial
from typing import Any

import httpx
import pytest

from frontdesk import errors
from frontdesk.config.confirm import TokenHolders
from frontdesk.config.options import read_options
from frontdesk.contracts.secrets import Secret
from frontdesk.formats import http
from frontdesk.web.confirmations import Credentials
from frontdesk.web.guesses import MOST_ADDRESSES, MOST_WRONG, WINDOW_SECONDS, Guesses
from tests.integration.confirming import ANN, TOKENS, credentials, opened, opened_pages, problem

SHORT, LONG = "s" * (http.MIN_CREDENTIAL_CHARACTERS - 1), "s" * http.MIN_CREDENTIAL_CHARACTERS


class Time:
    def __init__(self) -> None:
        self.seconds = 1000.0

    def __call__(self) -> float:
        return self.seconds


def bearer(token: str) -> dict[str, str]:
    return {"authorization": f"Bearer {token}"}


def hashed(token: str) -> str:
    return f"sha256:{hashlib.sha256(token.encode()).hexdigest()}"


async def sign_in(pages: httpx.AsyncClient, token: str) -> httpx.Response:
    origin = str(pages.base_url).rstrip("/")
    headers = {"x-frontdesk-page": "1", "origin": origin, "sec-fetch-site": "same-origin"}
    return await pages.post("/login", json={"token": token}, headers=headers)


@pytest.mark.parametrize(("kept", "shown"), [(SHORT, SHORT), (hashed(SHORT), SHORT), (f" {SHORT} ", SHORT)])
async def test_short_token_decides_nothing_and_asks_for_nothing(kept: str, shown: str) -> None:
    known = Credentials(approvers={"ann": lambda: kept, "eve": lambda: LONG}, agents={"bot": lambda: kept})
    async with opened(known=known) as desk:
        asked = await desk.ask()
        problem(await desk.http.post(asked["approve_url"], headers=bearer(shown)), 401)
        problem(await desk.http.get("/confirm?status=pending", headers=bearer(shown)), 401)
        assert await desk.status(asked["id"]) == "pending"
        assert (await desk.http.post(asked["approve_url"], headers=bearer(LONG))).status_code == 200
    async with opened_pages(known=known) as pages:
        problem(await sign_in(pages.http, shown), 401)
        assert (await sign_in(pages.http, LONG)).status_code == 200


def test_settings_refuse_a_short_token(monkeypatch: pytest.MonkeyPatch) -> None:
    table = {"approvers_env": {"ann": "ANN_TOKEN"}, "agents_env": {"bot": "ANN_TOKEN"}}
    people = read_options(TokenHolders, table, ("confirm",))
    for token in (LONG, hashed(SHORT)):
        monkeypatch.setenv("ANN_TOKEN", token)
        assert (people.approvers["ann"](), people.agents["bot"]()) == (token, token)
    monkeypatch.setenv("ANN_TOKEN", SHORT)
    for secret in (people.approvers["ann"], people.agents["bot"]):
        with pytest.raises(errors.UnusableSecret, match="shorter than 20 characters"):
            secret()


async def test_token_that_cannot_be_used_is_told_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def told() -> list[str]:
        found = [record.getMessage() for record in caplog.records]
        caplog.clear()
        return [line.split()[0] for line in found if "event=credential_" in line]

    table = {"approvers_env": {"ann": "ANN_TOKEN"}}
    monkeypatch.setenv("ANN_TOKEN", SHORT)
    ann = read_options(TokenHolders, table, ("confirm",)).approvers["ann"]
    async with opened(known=Credentials(approvers={"ann": ann})) as desk:
        for expected in (["event=credential_weak"], [], []):
            problem(await guess(desk.http, LONG), 401)
            assert told() == expected
        monkeypatch.delenv("ANN_TOKEN")
        for expected in (["event=credential_missing"], []):
            problem(await guess(desk.http, LONG), 401)
            assert told() == expected
        monkeypatch.setenv("ANN_TOKEN", LONG)
        assert (await guess(desk.http, LONG)).status_code == 200
        monkeypatch.delenv("ANN_TOKEN")
        problem(await guess(desk.http, LONG), 401)
        assert told() == ["event=credential_missing"]


async def guess(client: httpx.AsyncClient, token: str) -> httpx.Response:
    return await client.get("/audit", headers=bearer(token))


async def test_guesses_of_one_address_are_looked_at_slowly() -> None:
    time = Time()
    async with opened(known=credentials(Guesses(time))) as desk:
        for number in range(MOST_WRONG):
            problem(await guess(desk.http, f"{LONG}{number}"), 401)
        # A right one is not known from a wrong one.
        for token in (f"{LONG}!", TOKENS["eve"]):
            refused = await guess(desk.http, token)
            problem(refused, 429)
            assert refused.headers["retry-after"] == str(int(WINDOW_SECONDS))
        time.seconds += WINDOW_SECONDS
        assert (await guess(desk.http, TOKENS["eve"])).status_code == 200


async def test_guesser_keeps_nobody_out_who_is_at_work() -> None:
    async with opened(known=credentials(Guesses(Time()))) as desk:
        assert (await guess(desk.http, TOKENS["ann"])).status_code == 200
        asked = await desk.ask()
        for number in range(3 * MOST_WRONG):
            await guess(desk.http, f"{LONG}{number}")
        assert (await desk.http.post("/confirm", json={"action": "a", "description": "b"})).status_code == 202
        assert (await desk.http.post(asked["approve_url"], headers=ANN)).status_code == 200


async def test_guesser_keeps_nobody_out_who_comes_with_a_token_that_we_made() -> None:
    made = [secrets.token_urlsafe(32), secrets.token_hex(32)]
    approvers: dict[str, Secret] = {f"person{each}": partial(str, token) for each, token in enumerate(made)}
    known = Credentials(approvers=approvers, agents={}, guesses=Guesses(Time()))
    async with opened(known=known) as desk, opened_pages(service=desk.service, known=known) as pages:
        for number in range(3 * MOST_WRONG):
            await guess(desk.http, f"{LONG}{number}")
        for token in made:
            assert (await guess(desk.http, token)).status_code == 200
            assert (await sign_in(pages.http, token)).status_code == 200
        problem(await guess(desk.http, secrets.token_urlsafe(32)), 401)
        problem(await guess(desk.http, "a long phrase of words that somebody has made up"), 429)


async def test_signing_in_is_slowed_together_with_everything_else() -> None:
    known: dict[str, Any] = {"known": credentials(Guesses(Time()))}
    async with opened(**known) as desk, opened_pages(service=desk.service, **known) as pages:
        for number in range(MOST_WRONG):
            problem(await sign_in(pages.http, f"{LONG}{number}"), 401)
        problem(await sign_in(pages.http, TOKENS["eve"]), 429)
        problem(await guess(desk.http, TOKENS["eve"]), 429)


def test_addresses_count_apart_and_networks_of_ipv6_together() -> None:
    guesses = Guesses(Time())
    for number in range(MOST_WRONG):
        guesses.note("10.0.0.1", b"%d" % number, right=False)
        guesses.note(f"2001:db8::{number:x}", b"%d" % number, right=False)
    assert guesses.wait_seconds("10.0.0.1", b"x") == int(WINDOW_SECONDS)
    assert guesses.wait_seconds("::ffff:10.0.0.1", b"x") == int(WINDOW_SECONDS)
    assert guesses.wait_seconds("10.0.0.2", b"x") == 0
    assert guesses.wait_seconds("2001:db8::ffff", b"x") == int(WINDOW_SECONDS)
    assert guesses.wait_seconds("2001:db8:0:1::1", b"x") == 0


def test_token_that_was_right_somewhere_is_no_way_around_elsewhere() -> None:
    guesses = Guesses(Time())
    guesses.note("10.0.0.1", b"right", right=True)
    for address in ("10.0.0.1", "10.0.0.2"):
        for number in range(MOST_WRONG):
            guesses.note(address, b"%d" % number, right=False)
    assert guesses.wait_seconds("10.0.0.1", b"right") == 0
    assert guesses.wait_seconds("10.0.0.2", b"right") > 0
    guesses.note("10.0.0.1", b"right", right=False)  # it was changed
    assert guesses.wait_seconds("10.0.0.1", b"right") > 0


def test_what_is_remembered_is_bounded() -> None:
    guesses = Guesses(Time())
    for number in range(MOST_ADDRESSES + 10):
        guesses.note(f"host-{number}", b"x", right=False)
        guesses.note(f"host-{number}", b"y", right=True)
    assert len(guesses._wrong) == MOST_ADDRESSES
    assert len(guesses._right) < MOST_ADDRESSES
