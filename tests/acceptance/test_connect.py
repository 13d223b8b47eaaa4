"""``frontdesk connect``: what is asked, tried and written; and ``doctor`` about what was connected."""

import asyncio
import contextlib
import json
import stat
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest

from frontdesk.testing.telegram import BotApi, Member
from tests.acceptance import program
from tests.acceptance.terminals import CTRL_C, Seat, seated
from tests.peers.mail import LOGIN, PASSWORD, PostOffice

CHANNEL = """
import asyncio, os, pathlib
import msgspec
from frontdesk import Platform, errors
from frontdesk.contracts.channels import Capabilities
from frontdesk.contracts.secrets import Secret
from frontdesk.contracts.setups import Newcomer
from frontdesk.model import deliveries, findings

PARROT = Platform.register("parrot")


class Options(msgspec.Struct, frozen=True, kw_only=True):
    token: Secret
    ring: Secret | None = None
    cage: str = "kitchen"


class Channel:
    Options = Options
    name = PARROT
    capabilities = Capabilities()
    routes = ()

    def __init__(self, options, account=None):
        self.options, self.account = options, account

    async def receive(self, desk):
        await asyncio.Event().wait()

    async def send(self, delivery):
        self.options.token()
        said = pathlib.Path(os.environ["HOME"], "said.txt")
        said.write_text(f"{delivery.to.chat_id}: {delivery.text}")
        return deliveries.Sent()

    async def examine(self, *, in_use, home=None):
        try:
            token = self.options.token()
        except errors.MissingSecret as error:
            return [findings.failed(str(error))]
        if token != "good-token":
            return [findings.failed("the parrot does not know this token")]
        found = [findings.Finding(text=f"Polly in the {self.options.cage}")]
        if home == "gone":
            return [*found, findings.failed("nobody is there")]
        return [*found, findings.warning(f"{home} is empty")] if home == "empty" else found

    async def meet(self):
        yield Newcomer(user_id="66", chat_id="c66", name="Eve\\x1b[2J")
        yield Newcomer(user_id="7", chat_id="c7", name="Ann")

    async def close(self):
        pass
"""
SETUP = """
from frontdesk.contracts.setups import Setup, SetupQuestion

SETUP = Setup(
    title="Parrot",
    steps="1. Buy a parrot.",
    questions=(
        SetupQuestion(name="token", prompt="Its token", where="On its foot.", secret=True),
        SetupQuestion(name="ring", prompt="Its ring", secret=True, optional=True),
        SetupQuestion(name="cage", prompt="Its cage", default="kitchen"),
    ),
    people="Ask the parrot who you are.",
    person_form=r"\\d+",
    home="Ask the parrot where it lives.",
)
"""
POINTS = (
    "[frontdesk.channels]\nparrot = parrots.channel:Channel\nbroken-post = no_such_module_of_ours:Channel\n"
)
FILE = """\
# Mine, do not lose it.
[agent]
driver = "scripted"  # for now

[server]
port = 0 # any

[confirm]
enabled = false

[channels.webhook.shop] # orders
secret_env = "SHOP"
callback_url = "http://127.0.0.1:9/"
"""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    folder = tmp_path / "site-packages"
    facts, package = folder / "parrots-1.0.dist-info", folder / "parrots"
    for each in (facts, package, tmp_path / ".frontdesk"):
        each.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "channel.py").write_text(CHANNEL)
    (package / "connect.py").write_text(SETUP)
    (facts / "METADATA").write_text("Metadata-Version: 2.1\nName: parrots\nVersion: 1.0\n")
    (facts / "entry_points.txt").write_text(POINTS)
    (tmp_path / ".frontdesk" / "frontdesk.toml").write_text(FILE)
    return tmp_path


def path_of(home: Path) -> str:
    return str(home / "site-packages")


def connect(home: Path, *arguments: str, **more: str) -> Any:
    return program.run(home, "connect", *arguments, PYTHONPATH=path_of(home), **more)


def written(home: Path) -> dict[str, Any]:
    return tomllib.loads((home / ".frontdesk" / "frontdesk.toml").read_text())


def untouched(home: Path) -> bool:
    files = sorted(
        str(each.relative_to(home / ".frontdesk"))
        for each in (home / ".frontdesk").rglob("*")
        if each.is_file()
    )
    return files == ["frontdesk.toml"] and (home / ".frontdesk" / "frontdesk.toml").read_text() == FILE


def test_platforms_that_can_be_connected_are_listed_and_explained(home: Path) -> None:
    assert "Connect Parrot." in connect(home, "--help").stdout
    told = connect(home, "parrot", "--help").stdout
    assert "1. Buy a parrot." in told
    assert "--token-env" in told
    unknown = connect(home, "pigeon")
    assert (unknown.returncode, "There are: discord, email, matrix, parrot" in unknown.stderr) == (2, True)


def test_script_connects_a_platform_and_the_rest_of_the_file_stays_as_it_was(home: Path) -> None:
    flags = (
        "--token-env",
        "TOKEN",
        "--cage",
        "attic",
        "--allow",
        "7",
        "--allow",
        "8",
        "--home",
        "c7",
        "--json",
    )
    done = connect(home, "parrot", *flags, TOKEN="good-token")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert (told["connected"], told["hello"], told["findings"][0]["text"]) == (
        True,
        True,
        "Polly in the attic",
    )
    text = (home / ".frontdesk" / "frontdesk.toml").read_text()
    assert text.startswith(FILE)
    made = written(home)
    assert made["channels"]["parrot"] == {"token_env": "TOKEN", "cage": "attic", "allow": ["7", "8"]}
    assert made["platforms"]["parrot"] == {"home_channel": {"chat_id": "c7"}}
    assert (home / "said.txt").read_text().startswith("c7: Hello!")
    found = program.run(home, "doctor", "--json", PYTHONPATH=path_of(home), TOKEN="good-token", SHOP="x" * 40)
    assert {"parrot: Polly in the attic"} == {
        each["text"] for each in json.loads(found.stdout) if each["check"] == "platforms"
    }


def test_doctor_says_what_the_platform_says_of_a_token_that_it_no_longer_takes(home: Path) -> None:
    connect(home, "parrot", "--token-env", "TOKEN", "--allow", "7", "--home", "empty", TOKEN="good-token")
    for token, verdicts in (("good-token", ["ok", "warning"]), ("old-token", ["failed"])):
        done = program.run(home, "doctor", "--json", PYTHONPATH=path_of(home), TOKEN=token, SHOP="x" * 40)
        found = [each["verdict"] for each in json.loads(done.stdout) if each["check"] == "platforms"]
        assert (found, done.returncode) == (verdicts, int("failed" in verdicts))


def test_account_of_its_own_is_let_in_under_its_name(home: Path) -> None:
    flags = ("--token-env", "TOKEN", "--allow", "7", "--account", "second")
    assert connect(home, "parrot", *flags, TOKEN="good-token").returncode == 0
    assert written(home)["channels"]["parrot"] == {
        "second": {"token_env": "TOKEN"},
        "allow": ["parrot@second:7"],
    }


@pytest.mark.parametrize(
    ("flags", "token", "why"),
    [
        ((), "good-token", "Nobody can be asked here: give --token-env or --token-file."),
        (("--token-env", "TOKEN"), "bad-token", "the parrot does not know this token"),
        (("--token-env", "TOKEN"), "", "TOKEN"),
        (("--token-env", "TOKEN", "--account", "a/b"), "good-token", "--account"),
    ],
)
def test_what_does_not_work_is_not_written(home: Path, flags: tuple[str, ...], token: str, why: str) -> None:
    done = connect(home, "parrot", *flags, "--json", TOKEN=token)
    assert done.returncode != 0
    assert why in done.stdout + done.stderr
    assert untouched(home)


def test_credentials_are_replaced_only_when_that_is_said(home: Path) -> None:
    first = ("parrot", "--token-env", "TOKEN", "--allow", "7")
    assert connect(home, *first, TOKEN="good-token").returncode == 0
    again = connect(home, *first, TOKEN="good-token")
    assert (again.returncode, "--replace" in again.stderr) == (1, True)
    token = home / "token"
    token.write_text("good-token")
    replaced = connect(home, "parrot", "--token-file", "token", "--allow", "9", "--replace")
    assert replaced.returncode == 0, replaced.stderr
    assert written(home)["channels"]["parrot"] == {"token_file": str(token), "allow": ["7", "9"]}


def test_person_is_walked_through_and_lets_in_only_whom_they_know(home: Path) -> None:
    with seated(home, "connect", "parrot", PYTHONPATH=path_of(home)) as seat:
        assert "1. Buy a parrot." in seat.read_until("Its token: ")
        seat.type("bad-token\n")
        seat.read_until("Its ring: ")
        seat.type("\n")
        seat.read_until("Try again? [y/N]: ")
        seat.type("y\n")
        seat.read_until("Its token: ")
        seat.type("good-token\n")
        seat.read_until("Its ring: ")
        seat.type("\n")
        assert "good-token" not in seat.read_until("from your own account? [y/N]: ")
        seat.type("y\n")
        seat.read_until('with the id "66". May they talk to it? [y/N]: ')
        seat.type("n\n")
        seat.read_until('"Ann" wrote, with the id "7". May they talk to it? [y/N]: ')
        seat.type("y\n")
        seat.read_until("see every conversation? [y/N]: ")
        seat.type("n\n")
        seat.read_until("for what nobody asked for? [y/N]: ")
        seat.type("y\n")
        code, _ = seat.finish()
    assert code == 0
    secret = home / ".frontdesk" / "secrets" / "parrot-token"
    assert (secret.read_text(), stat.S_IMODE(secret.stat().st_mode)) == ("good-token\n", 0o600)
    assert written(home)["channels"]["parrot"] == {"token_file": str(secret), "allow": ["7"]}
    assert (home / "said.txt").read_text().startswith("c7: Hello!")


def interrupted(seat: Seat) -> int:
    """Ctrl-C until it is heard: one that comes in the instant before the program waits for a line is heard
    with the line. Its exit code."""
    while seat.process.poll() is None:
        seat.type(CTRL_C)
        with contextlib.suppress(subprocess.TimeoutExpired):
            seat.process.wait(1)
    return seat.process.wait()


def begin(seat: Seat) -> None:
    seat.read_until("Its token: ")
    seat.type("good-token\n")
    seat.read_until("Its ring: ")
    seat.type("of-gold\n")
    seat.read_until("from your own account? [y/N]: ")


def test_people_and_the_home_channel_are_asked_for_until_the_platform_can_know_them(home: Path) -> None:
    with seated(home, "connect", "parrot", PYTHONPATH=path_of(home)) as seat:
        begin(seat)
        seat.type("n\n")
        seat.read_until("with commas between them: ")
        seat.type("7, @ann\n")
        assert '"@ann" is no such id. Ask the parrot who you are.' in seat.read_until("between them: ")
        seat.type("7, role:12\n")
        assert "Ask the parrot where it lives." in seat.read_until("nothing for none: ")
        seat.type("gone\n")
        assert "nobody is there" in seat.read_until("nothing for none: ")
        seat.type("c7\n")
        assert seat.finish()[0] == 0
    made = written(home)
    places = {
        f"{name}_file": str(home / ".frontdesk/secrets" / f"parrot-{name}") for name in ("token", "ring")
    }
    assert made["channels"]["parrot"] == {**places, "allow": ["7", "role:12"]}
    assert made["platforms"]["parrot"]["home_channel"] == {"chat_id": "c7"}
    assert (home / "said.txt").read_text().startswith("c7: Hello!")


def test_whoever_keeps_the_credentials_is_asked_for_none(home: Path) -> None:
    assert connect(home, "parrot", "--token-env", "TOKEN", "--allow", "7", TOKEN="good-token").returncode == 0
    with seated(home, "connect", "parrot", PYTHONPATH=path_of(home)) as seat:
        assert "Its token" not in seat.read_until("Replace its credentials? [y/N]: ")
        seat.type("n\n")
        code, told = seat.finish()
    assert (code, "Nothing was written." in told) == (1, True)


def test_killed_walk_leaves_nothing(home: Path) -> None:
    with seated(home, "connect", "parrot", PYTHONPATH=path_of(home)) as seat:
        begin(seat)
        seat.process.kill()
        seat.process.wait()
    assert untouched(home)


def test_interrupted_walk_leaves_nothing_behind(home: Path) -> None:
    with seated(home, "connect", "parrot", PYTHONPATH=path_of(home)) as seat:
        begin(seat)
        assert interrupted(seat) == 130
    assert untouched(home)


async def test_telegram_bot_is_connected_greets_and_is_looked_after(tmp_path: Path) -> None:
    async with BotApi.open() as api:
        api.private(Member(id=7, first_name="Ann"))
        token = tmp_path / "token"
        token.write_text(api.token)
        asked = ("telegram", "--token-file", str(token), "--api-url", api.url, "--allow", "7", "--home", "7")
        done = await asyncio.to_thread(connect, tmp_path, *asked, "--json")
        assert done.returncode == 0, done.stderr
        assert [(each.chat_id, each.text[:6]) for each in api.posts] == [(7, "Hello!")]
        assert json.loads(done.stdout)["findings"][0]["text"] == "@desk_bot (Desk)"
        for written, verdict in ((api.token, "ok"), (f"{api.token[:-1]}x", "failed")):
            token.write_text(written)
            looked = await asyncio.to_thread(program.run, tmp_path, "doctor", "--json")
            found = [each for each in json.loads(looked.stdout) if each["check"] == "platforms"]
            assert (found[0]["verdict"], found[0]["text"][:9]) == (verdict, "telegram:")


def test_what_makes_no_channel_is_asked_for_again_with_what_was_said(tmp_path: Path) -> None:
    given = (
        "--password-env",
        "P",
        "--imap-host",
        "imap.test",
        "--smtp-host",
        "smtp.test",
        "--authserv-id",
        "mx",
    )
    with seated(tmp_path, "connect", "email", *given, P="secret") as seat:
        seat.read_until("The mailbox's address: ")
        seat.type("desk\n")
        assert "allowed: an address such as" in seat.read_until("Try again? [y/N]: ")
        seat.type("y\n")
        seat.read_until("The mailbox's address [desk]: ")
        assert interrupted(seat) == 130


def test_mailbox_is_connected_where_both_servers_take_the_password(
    tmp_path: Path, post_office: PostOffice
) -> None:
    post_office.empty()
    post_office.mode("works")
    servers = {
        "--address": LOGIN,
        "--imap-host": "127.0.0.1",
        "--imap-port": str(post_office.imap_port),
        "--smtp-host": "127.0.0.1",
        "--smtp-port": str(post_office.smtp_port),
    }
    given = [word for pair in servers.items() for word in pair]
    given += ["--imap-security", "none", "--smtp-security", "none", "--home", "ann@a.test", "--json"]
    for password, code, found in (
        ("wrong", 1, ["failed"]),
        (PASSWORD, 0, ["ok", "warning"]),
    ):
        done = connect(tmp_path, "email", *given, "--password-env", "PASSWORD", PASSWORD=password)
        verdicts = [each["verdict"] for each in json.loads(done.stdout)["findings"]]
        assert (done.returncode, verdicts) == (code, found), done.stderr
        assert ("app password" in done.stdout) == bool(code)
    assert written(tmp_path)["channels"]["email"]["imap_port"] == post_office.imap_port
    assert [mail["To"] for mail in post_office.taken()] == ["ann@a.test"]
