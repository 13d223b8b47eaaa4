"""What people are told of a request besides its bytes: the first time, what differs, whose it is."""

from typing import Any

from frontdesk.flow.confirmations.confirming import ConfirmationService
from frontdesk.formats import precedents
from frontdesk.model.confirmations import Caller, CallerKind, Confirmation
from tests.integration.confirming import ANN, BOT, Desk, opened, opened_pages
from tests.integration.test_confirmations_pages import Seen, link_to, sign_in

AGENT = Caller(id="token:bot", kind=CallerKind.AGENT)
APPROVER = Caller(id="token:ann", kind=CallerKind.APPROVER)
SECRET, OTHER = "aB3dE5gH7jK9aB3d", "zY8xW6vU4tS2zY8x"


async def ask(service: ConfirmationService, *argv: str, **more: Any) -> Confirmation:
    data = {"action": "run", "description": "Please", "details": {"argv": [*argv]}}
    return (await service.submit(data, AGENT, **more)).confirmation


async def shown(desk: Desk, asked: Confirmation, headers: dict[str, str]) -> Any:
    answer = await desk.http.get(f"/confirm/{asked.id}", headers=headers)
    return answer.raise_for_status().json()["known"]


async def test_approvers_are_told_what_is_new_and_agents_are_not() -> None:
    async with opened() as desk:
        first = await ask(desk.service, "kubectl", "get", "ns", "a", f"--token={SECRET}")
        known = await shown(desk, first, ANN)
        assert [odd["label"] for odd in known["unusual"]] == ["first time"]
        assert known["comparison"] == []
        await desk.service.approve(first.id, APPROVER)
        second = await ask(desk.service, "kubectl", "delete", "ns", "a", f"--token={OTHER}")
        known = await shown(desk, second, ANN)
        assert [odd["text"] for odd in known["unusual"]] == [
            precedents.DIFFERENT.format(places="argv[1], argv[4]"),
        ]
        assert [line["sign"] for line in known["comparison"]] == ["−", "+"]
        assert SECRET not in str(known)
        assert OTHER not in str(known)
        assert await shown(desk, second, BOT) is None
        listed = (await desk.http.get("/confirm?status=pending", headers=ANN)).raise_for_status().json()
        assert [each["known"] for each in listed["confirmations"]] == [known]


async def test_page_and_list_say_so_too() -> None:
    async with opened_pages() as desk:
        await sign_in(desk)
        first = await ask(desk.service, "kubectl", "get", "ns", "a")
        await desk.service.approve(first.id, APPROVER)
        asked = await ask(
            desk.service, "kubectl", "delete", "ns", "b", on_behalf_of="telegram:7", on_behalf_name="Ann"
        )
        page = " ".join(Seen((await desk.http.get(f"/approvals/{asked.id}")).text).texts)
        for text in (
            precedents.FIRST.format(whom="this target"),
            precedents.DIFFERENT.format(places="argv[1], argv[3]"),
            '− "kubectl get ns a"',
            '+ "kubectl delete ns b"',
            '"Ann" (telegram:7)',
            "Deletes in a cluster",
        ):
            assert text in page
        linked = " ".join(Seen((await desk.http.get(link_to(asked))).text).texts)
        assert precedents.DIFFERENT.format(places="argv[1], argv[3]") in linked
        assert "kubectl get ns a" not in linked, "a link shows nothing of another request"
        listed = " ".join(Seen((await desk.http.get("/approvals")).text).texts)
        for label in ("first time", "other than the last", "deletes", '"Ann" (telegram:7)'):
            assert label in listed
