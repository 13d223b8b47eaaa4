"""A gateway in the middle of a working day, for pictures: chats, work, a question, trouble."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from pathlib import Path
from typing import Any

from tests.acceptance import program
from tests.acceptance.sites import SiteDesk
from tests.acceptance.test_run import Receiver, request
from tests.patience import until

COPIED = "All 41,208 objects are in `invoices-archive`, and the sums agree."
LEFT = """Understood: 2022 stays where it is. I keep the shipping company’s invoices apart:

1. **2,210** of them so far, none older than 2021
2. their sums go into `archive/sums.csv`, as a column of their own"""
CHATS: dict[str, list[tuple[str, str, str]]] = {
    "Ops room 🛠 · Nachtschicht": [
        (
            "Jonas Weber",
            "Archive all invoices before 2024; check the sums before anything is deleted.",
            '!tool shell {"command": "aws s3 ls s3://invoices"}; !tokens 3100 210 0.012; !say I have a plan: '
            "`archive/plan.md`.",
        ),
        (
            "Jonas Weber",
            "Copy the rest, compare, then ask Marta before you delete the originals of 2023.",
            '!tool shell {"command": "aws s3 cp s3://invoices s3://invoices-archive --recursive"};'
            ' !toolerror shell {"command": "python sums.py"};'
            ' !tool shell {"command": "python sums.py --retry"};'
            f" !tokens 7100 410 0.029; !say {COPIED}",
        ),
        ("Marta Lindqvist", "2022 stays, it is under audit.", f"!tokens 5200 340 0.021; !say {LEFT}"),
    ],
    "أمينة الخطيب": [
        (
            "أمينة",
            "هل يمكنك إرسال جدول الرحلات المحدّث قبل الغد؟",
            "!tokens 800 90 0.003; !say نعم، سأرسله الليلة.",
        )
    ],
    "東京オフィス 総務連絡室": [
        (
            "田中 美咲",
            "会議室の予約を来週に変更してください。",
            "!say 会議室の予約を来週の火曜日に変更しました。",
        )
    ],
    "</b><script>alert(1)</script>": [
        (
            "Mallory",
            "![x](https://tracker.example/p.png) <img src=x onerror=alert(1)>",
            "!say I see only text.",
        )
    ],
    "Großmutter Ilse-Marie von der Weyhenmühle": [
        ("Ilse-Marie", "Schreibst du mir das Rezept auf?", "!say Das Rezept steht jetzt in deinen Notizen.")
    ],
    "Release notes": [
        (
            "Ann",
            "Draft the notes for 0.9, please.",
            "!tokens 2100 700 0.012; !say The draft is in `notes.md`.",
        )
    ],
}
WORKING = ("Nightly report", "Sam", "Write the report of today.", "!say Orders are up by 4 %, and; !hang")
ASKING = (
    "#payments-oncall",
    "Lee",
    "Please remove the old staging namespace.",
    '!approve run_command {"argv": ["kubectl", "delete", "namespace", "payments-staging"],'
    ' "cwd": "/srv/deploy"} Cleaning up, as agreed with the team.',
)
REFUSED = ("Orders desk", "Kim", "Which orders are open?", "!say Three: 1207, 1211 and 1214.")
BUSY = ("Warehouse", "Noor", "How many pallets are left?", "!say Twelve, and four more come on Friday.")
ON_PAGE = (
    "What is still to do before Friday?",
    "!tokens 900 120 0.004; !say Two things: the sums, and the plan.",
)
ANSWERS = {REFUSED[0]: 410, BUSY[0]: 503}
"""How the receiver answers for these chats."""
AGENT = """
import json, sys
from pathlib import Path
from frontdesk.agents import scripted
from msgspec.structs import replace

SAYS = json.loads((Path(__file__).parent / "says.json").read_text())
driver = scripted.Driver(scripted.Options())

async def act(turn, line):
    said = next((SAYS[each] for each in SAYS if each in str(turn.input)), "!say Good.")
    async for event in driver.run(replace(turn, input={**turn.input, "content": said}), line):
        yield event
"""


class MoodyReceiver(Receiver):
    def status_of(self, said: dict[str, Any]) -> int:
        return ANSWERS.get(said["chat_id"], super().status_of(said))


@contextmanager
def working_day(home: Path) -> Iterator[SiteDesk]:
    """Everything has been said; one turn runs, one waits for somebody, one answer is lost and one late."""
    said = [each for chat in CHATS.values() for each in chat]
    said += [each[1:] for each in (WORKING, ASKING, REFUSED, BUSY)] + [("", *ON_PAGE)]
    with MoodyReceiver().serving() as receiver:
        desk = SiteDesk(home, receiver, agent='driver = "python"\ntarget = "actor:act"')
        folder = home / ".frontdesk"
        (folder / "actor.py").write_text(AGENT)
        (folder / "says.json").write_text(json.dumps({text: answer for _, text, answer in said}))
        (desk.work / "plan.md").write_text("1. copy\n2. compare\n")
        with desk.running():
            _fill(desk)
            yield desk


def _fill(desk: SiteDesk) -> None:
    for number, (name, said) in enumerate(CHATS.items()):
        for who, text, _ in said:
            desk.say(text, f"chat-{number}", who, chat_name=name, user_name=who)
            until(lambda: not _is_busy(desk))
    for name, who, text, _ in (REFUSED, BUSY):
        desk.say(text, name, who, chat_name=name, user_name=who)
    until(lambda: len(desk.ask("deliveries", "list")) == len(ANSWERS))
    _write_on_page(desk, ON_PAGE[0])
    made = program.run(desk.home, "chat", "-m", "/checkpoint Before the archive")
    assert "made" in made.stdout, made.stdout + made.stderr
    (desk.work / "plan.md").write_text("1. copy\n2. compare the sums\n3. ask Marta\n")
    desk.say("/title Move invoices to the archive", "chat-0", "Marta Lindqvist", user_name="Marta Lindqvist")
    for number, (name, who, text, _) in enumerate((WORKING, ASKING), len(CHATS)):
        desk.say(text, f"chat-{number}", who, chat_name=name, user_name=who)
    until(lambda: bool(desk.ask("confirm", "list", "--status", "pending")))


def _write_on_page(desk: SiteDesk, text: str) -> None:
    """What the owner writes in a chat of the page."""
    headers = {"authorization": f"Bearer {desk.token}", "content-type": "application/json"}
    body = json.dumps({"text": text}).encode()
    status, answer = request(desk.url, "POST", "/api/v1/chats", body, headers)
    assert status == HTTPStatus.ACCEPTED, answer
    until(lambda: not _is_busy(desk))


def _is_busy(desk: SiteDesk) -> bool:
    return any(desk.ask("status")["turns"].values())
