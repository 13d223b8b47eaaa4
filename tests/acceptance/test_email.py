"""A gateway that is written to by mail, as a user starts it, killed in the middle of its traffic."""

import random
import re
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from email.message import EmailMessage
from pathlib import Path
from subprocess import Popen
from threading import Thread

import pytest

from tests import counts
from tests.acceptance import program
from tests.peers.mail import LOGIN, PASSWORD, PostOffice, running

CONFIGURATION = """
[agent]
driver = "scripted"

[server]
port = 0

[confirm]
enabled = false

[channels.email]
address = "{login}"
password_env = "MAIL_PASSWORD"
imap_host = "127.0.0.1"
imap_port = {imap_port}
imap_security = "none"
smtp_host = "127.0.0.1"
smtp_port = {smtp_port}
smtp_security = "none"
folder = "{folder}"
sent_folder = "{sent_folder}"
idle_seconds = 0.5
timeout_seconds = 5
max_answers_per_hour = 0
max_answers_per_day = 0
allow = ["*"]
"""
PEOPLE = [f"ann{number}@a.test" for number in range(4)]
ANSWER = re.compile(r"echo: message (\d+)")
NUMBER = re.compile(r"message (\d+)")
PATIENCE_SECONDS = 90.0
POLL_SECONDS = 0.1

pytestmark = pytest.mark.prove


def mail(number: int) -> bytes:
    made = EmailMessage()
    made["From"], made["To"] = random.choice(PEOPLE), LOGIN
    made["Subject"], made["Message-ID"] = f"Question {number}", f"<{number}@a.test>"
    made.set_content(f"message {number}")
    return made.as_bytes()


@contextmanager
def gateway(home: Path) -> Iterator[Popen[bytes]]:
    config = str(home / "frontdesk.toml")
    with (
        program.start(home, "--config", config, "run", MAIL_PASSWORD=PASSWORD) as process,
        program.drained(process, home / "log.txt"),
    ):
        yield process


def answers(office: PostOffice) -> list[int]:
    texts = [str(each.get_body(("plain",)).get_content()).strip() for each in office.taken()]  # type: ignore[union-attr]
    return [int(found[1]) for found in map(ANSWER.fullmatch, texts) if found]


def until_answered(office: PostOffice, count: int, home: Path | None = None) -> None:
    """With the home: or until senders were told that every attempt broke off. However many there are, the
    next one comes in time."""
    done, end = 0, time.monotonic() + PATIENCE_SECONDS
    while done < count:
        now = len({*answers(office), *(set_aside(home) if home else ())})
        if now > done:
            done, end = now, time.monotonic() + PATIENCE_SECONDS
        assert time.monotonic() < end, sorted(set(answers(office)))
        time.sleep(POLL_SECONDS)


def set_aside(home: Path) -> set[int]:
    """The numbers of the mails whose turns were cut off each time."""
    return {int(each[1]) for each in map(NUMBER.search, program.set_aside(home)) if each}


def test_mail_is_answered_once_whatever_is_killed_and_cut(tmp_path: Path, tell: counts.Tell) -> None:
    kills, messages = counts.count(2, 20), counts.count(16, 200)
    with running() as office:
        folder, sent = office.new_folder(), office.new_folder()
        office.file_into(sent)
        (tmp_path / "frontdesk.toml").write_text(
            CONFIGURATION.format(
                login=LOGIN,
                imap_port=office.imap_port,
                smtp_port=office.smtp_port,
                folder=folder,
                sent_folder=sent,
            )
        )
        probes = begin(tmp_path, office, folder)
        office.mode("weather")
        bring = Thread(target=lambda: [office.bring(folder, mail(number)) for number in range(messages)])
        bring.start()
        for _ in range(kills):
            with gateway(tmp_path) as process:
                until_answered(office, min(len(set(answers(office))) + random.randrange(5), messages))
                process.kill()
                process.wait()
        office_works = Thread(target=office.mode, args=("works",))
        with gateway(tmp_path):
            bring.join()
            office_works.start()
            until_answered(office, messages + len(probes), tmp_path)
        office_works.join()
        found, broken = Counter(answers(office)), set_aside(tmp_path)
    assert {number: copies for number, copies in found.items() if copies > 1} == {}
    assert {*found, *broken} == {*range(messages), *probes}
    assert not broken & set(found)
    tell("mails answered once", len(found))


def begin(home: Path, office: PostOffice, folder: str) -> set[int]:
    """The mailbox is known from the first mail on that is answered; those before it may be older."""
    probes: list[int] = []
    with gateway(home):
        end = time.monotonic() + PATIENCE_SECONDS
        while not answers(office):
            assert time.monotonic() < end
            probes.append(1_000_000 + len(probes))
            office.bring(folder, mail(probes[-1]))
            time.sleep(1)
        first = min(answers(office))
        until_answered(office, len([number for number in probes if number >= first]))
    return {number for number in probes if number >= first}
