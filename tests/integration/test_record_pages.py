"""Pages and questions about people, checkpoints, the audit log and settings, over real HTTP."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from frontdesk import GatewayConfig, Platform, SessionSource
from frontdesk.app.auditlog import ExportedRow
from frontdesk.config.effective import SettingsInEffect, in_effect
from frontdesk.config.settings import OPTION, Origin, Value
from frontdesk.flow import audits
from frontdesk.model.access import Access, Role, Strangers
from frontdesk.model.audit import AuditKind, Row
from frontdesk.model.confirmations import Caller, CallerKind
from frontdesk.model.running import Running
from frontdesk.snapshots import CheckpointManager
from frontdesk.web.pages import wording
from tests.integration.visiting import Visited, open_reception

ROOT = "matrix:root"
HOSTILE = "<script>alert(1)</script>\u202etxt"
PLACES = ("/people", "/checkpoints", "/audit", "/settings")


@pytest.fixture
async def reception(tmp_path: Path) -> AsyncIterator[Visited]:
    work = tmp_path / "work"
    work.mkdir()
    (work / "notes.txt").write_text("first\n")
    access = {"telegram": Access(strangers=Strangers.PAIR, allow=("9",), block=("666",))}
    async with open_reception(
        "sqlite:///:memory:",
        config=GatewayConfig(access=access),
        running=Running(checkpoints=True, working_dir=str(work)),
        snapshots=CheckpointManager(root=tmp_path / "checkpoints"),
    ) as opened:
        yield opened


async def ask_in(reception: Visited, user: str, name: str) -> str:
    """Somebody writes who is not let in; the code that they are shown."""
    people = reception.house.gateway.parts.authorization
    source = SessionSource(platform=Platform.TELEGRAM, chat_id=user, user_id=user, user_name=name)
    answer = await people.answer_stranger(source, await people.check(source))
    assert answer is not None
    return answer.partition("whoever runs me: ")[2].split()[0]


async def link(reception: Visited, user: str) -> None:
    """Somebody who was let in says that two names are theirs."""
    people = reception.house.gateway.parts.authorization
    one, other = (
        SessionSource(platform=platform, chat_id=user, user_id=user)
        for platform in (Platform.TELEGRAM, Platform.SLACK)
    )
    code = await people.begin_link(one, await people.look(one))
    await people.link(code, await people.look(other))


async def submit(reception: Visited, action: str = "say") -> str:
    agent = Caller(id="token:bot", kind=CallerKind.AGENT)
    request = {"action": action, "description": HOSTILE, "details": {"note": HOSTILE}}
    asked = await reception.house.gateway.parts.confirmations.submit(request, agent)
    return asked.confirmation.id


async def told(client: httpx.AsyncClient, about: str, /, **said: Any) -> Any:
    answer = await (client.post(f"/api/v1{about}", json=said) if said else client.get(f"/api/v1{about}"))
    assert answer.status_code == httpx.codes.OK, answer.text
    return answer.json()


async def page(client: httpx.AsyncClient, path: str) -> str:
    answer = await client.get(path)
    assert answer.status_code == httpx.codes.OK, answer.text
    assert "<script>alert" not in answer.text
    assert "\u202e" not in answer.text
    return answer.text


async def test_person_is_let_in_by_code_changed_and_sent_away(reception: Visited) -> None:
    root = await reception.visitor(Role.ADMINISTRATOR, ROOT)
    code = await ask_in(reception, "7", HOSTILE)
    shown = await page(root, "/people")
    assert "telegram:7" in shown
    assert "&lt;script&gt;" in shown
    assert (await told(root, "/people/approve", code=code, role="approver"))["granted_by"] == ROOT
    changed = await told(root, "/people/allow", principal="telegram:7", role="user")
    assert (changed["principal"], changed["role"]) == ("telegram:7", "user")
    assert await told(root, "/people/revoke", principal="telegram:7") is True
    assert await told(root, "/people") == {"items": [], "next": None}


async def test_refused_person_waits_no_longer_and_their_code_is_worth_nothing(reception: Visited) -> None:
    root = await reception.visitor(Role.ADMINISTRATOR, ROOT)
    code = await ask_in(reception, "7", "Ann")
    assert await told(root, "/people/refuse", principal="telegram:7") is True
    assert await told(root, "/people/refuse", principal="telegram:7") is False
    assert await told(root, "/people/pending") == []
    answer = await root.post("/api/v1/people/approve", json={"code": code})
    assert answer.status_code == httpx.codes.FORBIDDEN


@pytest.mark.parametrize("name", ["", "telegram", "nowhere:1", "telegram:", "telegram@:1", "telegram:%ff"])
async def test_name_that_is_none_lets_nobody_in(reception: Visited, name: str) -> None:
    root = await reception.visitor(Role.ADMINISTRATOR, ROOT)
    answer = await root.post("/api/v1/people/allow", json={"principal": name})
    assert answer.status_code == httpx.codes.BAD_REQUEST
    viewer = await root.post("/api/v1/people/allow", json={"principal": "telegram:1", "role": "viewer"})
    assert viewer.status_code == httpx.codes.BAD_REQUEST
    assert await told(root, "/people") == {"items": [], "next": None}


async def test_lists_of_people_go_on_where_they_were_cut(reception: Visited) -> None:
    root = await reception.visitor(Role.ADMINISTRATOR, ROOT)
    for number in range(5):
        await told(root, "/people/allow", principal=f"telegram:{number}")
        await told(root, "/people/allow", principal=f"slack:{number}")
        await link(reception, str(number))
    for path, key in (("/people", "principal"), ("/people/links", "person")):
        found, cursor = [], ""
        while cursor is not None:
            listed = await told(root, f"{path}?limit=2&after={cursor}" if cursor else f"{path}?limit=2")
            found += [each[key] for each in listed["items"]]
            cursor = listed["next"]
        assert len(found) == len(set(found)) == (10 if path == "/people" else 5)


async def test_names_of_one_person_are_shown_and_separated(reception: Visited) -> None:
    root = await reception.visitor(Role.ADMINISTRATOR, ROOT)
    for name in ("telegram:1", "slack:1"):
        await told(root, "/people/allow", principal=name)
    await link(reception, "1")
    (person,) = (await told(root, "/people/links"))["items"]
    assert person["names"] == ["slack:1", "telegram:1"]
    assert "Separate" in await page(root, "/people")
    assert await told(root, "/people/unlink", principal="slack:1") is True
    assert await told(root, "/people/links") == {"items": [], "next": None}


async def test_log_says_who_changed_access_over_http(reception: Visited) -> None:
    root = await reception.visitor(Role.ADMINISTRATOR, ROOT)
    await told(root, "/people/allow", principal="telegram:1", role="approver")
    made = await told(root, "/passes/tokens", name="grafana", role="viewer")
    own = {"x-frontdesk-page": "1", "origin": reception.url, "sec-fetch-site": "same-origin"}
    signed = await reception.nobody.post("/login", json={"token": made["token"]}, headers=own)
    assert signed.status_code == httpx.codes.OK, signed.text
    assert await told(root, "/passes/revoke", name="grafana") is True
    assert await told(root, "/people/revoke", principal="telegram:1") is True
    rows = (await told(root, "/audit"))["items"]
    assert [(each["kind"], each["actor"]) for each in rows][:5] == [
        ("person_revoked", ROOT),
        ("pass_ended", ROOT),
        ("signed_in", "pass:grafana"),
        ("pass_given", ROOT),
        ("person_let_in", ROOT),
    ]
    assert made["token"] not in str(rows)
    shown = await page(root, "/audit")
    assert [wording.say(f"audit_kinds.{kind}") in shown for kind in ("person_revoked", "pass_given")] == [
        True,
        True,
    ]


async def test_what_the_settings_allow_is_shown(reception: Visited) -> None:
    root = await reception.visitor(Role.ADMINISTRATOR, ROOT)
    (place,) = await told(root, "/people/access")
    assert (place["allow"], place["block"], place["strangers"]) == (["9"], ["666"], "pair")
    assert "666" in await page(root, "/people")


async def test_restore_and_its_undo(reception: Visited, tmp_path: Path) -> None:
    root = await reception.visitor(Role.ADMINISTRATOR, ROOT)
    snapshots, file = reception.house.gateway.parts.snapshots, tmp_path / "work" / "notes.txt"
    assert snapshots
    await snapshots.create_checkpoint(tmp_path / "work", HOSTILE)
    file.write_text(f"second {HOSTILE}\n")
    assert "&lt;script&gt;" in await page(root, "/checkpoints")
    shown = await page(root, "/checkpoints/1")
    assert "<del>-first</del>" in shown
    assert "⟨U+202E⟩" in shown
    done = await told(root, "/checkpoints/1/restore", path="notes.txt")
    assert (done["changed"], done["written"], done["removed"]) == (1, ["notes.txt"], [])
    assert file.read_text() == "first\n"
    again = await page(root, f"/checkpoints?restored={done['checkpoint']['id']}&undo={done['safety']['id']}")
    assert "Undo the restore" in again
    assert "Undo the restore" in await page(root, "/checkpoints")
    for forged in ("restored=2&undo=1", "undo=1", f"restored=2&undo={done['safety']['id']}"):
        assert "was restored" not in await page(root, f"/checkpoints?{forged}")
    await told(root, f"/checkpoints/{done['safety']['id']}/restore", profile=None)
    assert file.read_text().startswith("second")
    logged = (await told(root, "/audit"))["items"]
    kinds = [(each["kind"], each["actor"], each["facts"].get("undoes")) for each in logged]
    first = done["checkpoint"]["id"]
    assert kinds == [
        ("restored", ROOT, first),
        ("restore_begun", ROOT, first),
        ("restored", ROOT, None),
        ("restore_begun", ROOT, None),
        ("pass_given", "local", None),
    ]
    assert "notes.txt" in await page(root, "/audit?kind=restored")


async def test_what_is_no_checkpoint_is_refused(reception: Visited) -> None:
    root = await reception.visitor(Role.ADMINISTRATOR, ROOT)
    for path in ("/checkpoints/99", "/api/v1/checkpoints/99", "/api/v1/checkpoints/99/diff"):
        assert (await root.get(path)).status_code == httpx.codes.NOT_FOUND
    assert (await root.get("/checkpoints?profile=nobodys")).status_code == httpx.codes.BAD_REQUEST
    assert "Undo" not in await page(root, "/checkpoints?undo=99&restored=98")


async def test_log_is_listed_newest_first_and_found_by_kind_person_and_request(reception: Visited) -> None:
    root = await reception.visitor(Role.ADMINISTRATOR, ROOT)
    asked = [await submit(reception, f"say-{number}") for number in range(3)]
    await reception.house.gateway.parts.confirmations.deny(
        asked[0], Caller(id="token:ann", kind=CallerKind.APPROVER), reason=HOSTILE
    )
    listed = await told(root, "/audit?limit=2")
    numbers = [row["number"] for row in listed["items"]]
    rest = (await told(root, f"/audit?limit=100&after={listed['next']}"))["items"]
    assert [*numbers, *(row["number"] for row in rest)] == sorted(range(1, len(rest) + 3), reverse=True)
    assert [row["kind"] for row in (await told(root, "/audit?kind=denied"))["items"]] == ["denied"]
    assert {row["actor"] for row in (await told(root, "/audit?person=ANN"))["items"]} == {"token:ann"}
    of_one = (await told(root, f"/audit?request={asked[1]}"))["items"]
    assert {row["confirmation_id"] for row in of_one} == {asked[1]}
    assert asked[2] in await page(root, "/audit")
    assert asked[2] not in await page(root, f"/audit?request={asked[1]}")
    assert (await root.get("/api/v1/audit?kind=nothing")).status_code == httpx.codes.BAD_REQUEST


async def test_search_in_a_long_log_stops_and_goes_on() -> None:
    rows = [Row(number=number, body=b"", previous="", hash="") for number in range(25_000, 0, -1)]

    async def read(before: int, limit: int) -> list[Row]:
        return rows[25_001 - before :][:limit]

    wanted = audits.AuditFilter(request="c_")
    found, then = await audits.search(read, wanted, 25_001, 10)
    assert (found, then) == ([], 15_001)
    assert await audits.search(read, wanted, 5_000, 10) == ([], None)


async def test_verification_tells_how_far_it_is_and_what_it_found(reception: Visited) -> None:
    viewer = await reception.visitor(Role.VIEWER, ROOT)
    await submit(reception)
    for answer in await asyncio.gather(*(viewer.post("/api/v1/audit/verify", json={}) for _ in range(3))):
        *_, last = map(json.loads, answer.text.splitlines())
        assert (last["done"], last["whole"], last["fault"], last["rows"]) == (True, True, None, last["of"])
        assert last["anchor"].startswith(f"{last['rows']} ")


async def test_exported_log_can_be_verified_elsewhere(reception: Visited) -> None:
    viewer = await reception.visitor(Role.VIEWER, ROOT)
    await submit(reception)
    lines = (await viewer.get("/api/v1/audit/export")).text.splitlines()
    rows = [ExportedRow(**json.loads(line)) for line in lines]

    async def read() -> AsyncIterator[list[Row]]:
        yield [Row(number=r.number, previous=r.previous, hash=r.hash, body=r.body.encode()) for r in rows]

    verified = await audits.verify(read())
    assert verified.whole
    assert verified.rows == len(rows) > 0


async def test_settings_are_shown_with_their_origin_and_without_secrets(reception: Visited) -> None:
    secret = "sk-aB3dE5gH7jK9mN2pQ4rS6tU8vW0xY1z"
    values = [
        Value(
            setting=OPTION, path=("agent", "api_key_env"), value="A_KEY", origin=Origin.FILE, where="f.toml"
        ),
        Value(
            setting=OPTION, path=("agent", "command"), value=["run", "--token", secret], origin=Origin.FILE
        ),
        Value(setting=OPTION, path=("agent", "env"), value={"TOKEN": "hunter2", "LANG": "C"}),
        Value(setting=OPTION, path=("agent", "url"), value="https://me:pass1word@host/"),
        Value(setting=OPTION, path=("webhook", "callback_url"), value="https://me@host/hook?key=opensesame"),
        Value(
            setting=OPTION, path=("webhook", "places"), value=["https://host/?opensesame", "https://host/@a"]
        ),
        Value(setting=OPTION, path=("agent", "max_tokens"), value=100),
    ]
    known = SettingsInEffect(file="f.toml", items=tuple(in_effect(values, {"agent.api_key_env"})))
    reception.house.gateway.settings = lambda: known
    root = await reception.visitor(Role.ADMINISTRATOR, ROOT)
    view = await told(root, "/settings")
    shown = await page(root, "/settings?all=1")
    for hidden in (secret, "hunter2", "pass1word", "opensesame"):
        assert hidden not in shown
        assert hidden not in json.dumps(view)
    found = {each["name"]: each for each in view["items"]}
    assert found["agent.api_key_env"] | {"help": ""} == {
        "name": "agent.api_key_env",
        "value": "A_KEY",
        "written": '"A_KEY"',
        "origin": "file",
        "where": "f.toml",
        "help": "",
        "secret": "missing",
    }
    assert found["webhook.callback_url"]["value"] == "https://…@host/hook?…"
    assert found["webhook.places"]["value"] == ["https://host/?…", "https://host/@a"]
    assert found["agent.max_tokens"]["value"] == 100
    assert [each["name"] for each in (await told(root, "/settings?search=MAX_"))["items"]] == [
        "agent.max_tokens"
    ]
    assert shown.count('aria-label="agent"') == 1
    searched = await page(root, "/settings?q=MAX_")
    assert wording.say("settings.all", count=len(values)) in searched
    assert wording.say("settings.missing") in searched
    assert wording.say("settings.fine") not in searched


@pytest.mark.parametrize("role", [Role.USER, Role.APPROVER])
async def test_pages_are_for_those_who_see_everything(reception: Visited, role: Role) -> None:
    client = await reception.visitor(role, "telegram:3")
    for path in PLACES:
        assert (await client.get(path)).status_code == httpx.codes.FORBIDDEN


async def test_viewer_looks_and_finds_nothing_to_press(reception: Visited) -> None:
    viewer = await reception.visitor(Role.VIEWER, "telegram:3")
    for number in range(3):
        assert "As many people of telegram wait" not in await page(viewer, "/people")
        await ask_in(reception, f"7{number}", "Ann")
    assert "As many people of telegram wait" in await page(viewer, "/people")
    for path in PLACES:
        assert "data-act=" not in await page(viewer, path)


async def test_page_with_nothing_says_what_to_do(reception: Visited) -> None:
    root = await reception.visitor(Role.ADMINISTRATOR, ROOT)
    assert wording.say("people.how_they_come") in await page(root, "/people")
    assert wording.say("checkpoints.command") in await page(root, "/checkpoints")
    assert wording.say("audit.what_comes") in await page(root, "/audit?after=1"), (
        "the first row is their pass"
    )
    assert wording.say("settings.nothing_set") in await page(root, "/settings")


def test_whatever_is_logged_has_a_word() -> None:
    assert all(wording.say(f"audit_kinds.{kind}") for kind in AuditKind)
