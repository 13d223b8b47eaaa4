"""A gateway in the middle of a working day, for pictures: chats, work, a question, trouble."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.acceptance.sites import SiteDesk
from tests.acceptance.test_run import Receiver
from tests.patience import until

LIST = "All copied. What is left:\\n\\n1. **2,210** files of 2021\\n2. their sums, in `archive/sums.csv`"
CHATS: dict[str, list[tuple[str, str]]] = {
    "Ops room 🛠 · Nachtschicht": [
        ("Jonas Weber", "Copy the invoices of 2023 to the archive and compare the sums."),
        ("Jonas Weber", '!tool shell {"command": "aws s3 cp"}; !tokens 5200 340 0.021; !say Copied.'),
        ("Marta Lindqvist", f"!toolerror sums {{}}; !tool sums {{}}; !tokens 7100 410 0.029; !say {LIST}"),
    ],
    "أمينة الخطيب": [("أمينة", "!say هل يمكنك إرسال جدول الرحلات المحدّث قبل الغد؟")],
    "東京オフィス 総務連絡室": [("田中", "!say 会議室の予約を来週の火曜日に変更しました。")],
    "</b><script>alert(1)</script>": [("Mallory", "!say I am only text: <img src=x onerror=alert(1)>")],
    "Großmutter Ilse-Marie von der Weyhenmühle": [
        ("Ilse", "!tokens 900 80 0.003; !say Das Rezept steht da.")
    ],
    "Release notes": [("Ann", "!tokens 2100 700 0.012; !say The draft for 0.9 is in `notes.md`.")],
}
WORKING = ("Nightly report", "Sam", "!stream 40; !hang")
ASKING = (
    "#payments-oncall",
    "Lee",
    '!approve run_command {"argv": ["kubectl", "delete", "namespace", "payments-staging"]} It is not used.',
)


@contextmanager
def working_day(home: Path) -> Iterator[SiteDesk]:
    """Everything has been said and is shown; one turn runs, one waits for somebody."""
    with Receiver().serving() as receiver, SiteDesk(home, receiver).running() as desk:
        (desk.work / "plan.md").write_text("1. copy\n2. compare\n")
        for number, (name, said) in enumerate(CHATS.items()):
            for who, text in said:
                desk.say(text, f"chat-{number}", who, chat_name=name, user_name=who)
                until(lambda: not _is_busy(desk))
        desk.say("/title Invoices of 2023", "chat-0", "Jonas Weber", user_name="Jonas Weber")
        for number, (name, who, text) in enumerate((WORKING, ASKING), len(CHATS)):
            desk.say(text, f"chat-{number}", who, chat_name=name, user_name=who)
        until(lambda: bool(desk.ask("confirm", "list", "--status", "pending")))
        yield desk


def _is_busy(desk: SiteDesk) -> bool:
    return any(desk.ask("status")["turns"].values())
