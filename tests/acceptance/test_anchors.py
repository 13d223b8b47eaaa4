"""Anchors of the audit log: at an address, and when they are not there."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from frontdesk.confirm import SyncClient
from tests import loopback
from tests.acceptance import program
from tests.acceptance.services import serving

BEGIN = ("audit", "verify", "--new-anchor", "--anchor")


class Keeper:
    """Keeps the lines it is told."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.status = 200
        keeper = self

        class Handler(loopback.Quiet):
            def do_GET(self) -> None:
                self._answer(keeper.status if keeper.lines else 404, "".join(keeper.lines))

            def do_POST(self) -> None:
                keeper.lines.append(self.rfile.read(int(self.headers["content-length"])).decode())
                self._answer(keeper.status, "")

            def _answer(self, status: int, text: str) -> None:
                self.send_response(status)
                self.send_header("content-length", str(len(text)))
                self.end_headers()
                self.wfile.write(text.encode())

        self._handler = Handler
        self.url = ""

    @contextmanager
    def keeping(self) -> Iterator["Keeper"]:
        with loopback.served_by(self._handler) as address:
            self.url = f"{address}/anchor"
            yield self


def test_anchor_at_an_address_grows_and_finds_what_was_cut_off(tmp_path: Path) -> None:
    with Keeper().keeping() as keeper:
        with serving(tmp_path) as service:
            SyncClient(service.url).request("reboot", "Reboot it")
            assert service.run(*BEGIN, keeper.url).returncode == 0
            SyncClient(service.url).request("reboot", "Reboot it", {"host": "db"})
            assert service.run("audit", "verify", "--anchor", keeper.url).returncode == 0
        assert [line.split()[0] for line in keeper.lines] == ["1", "2"]
        keeper.lines.append(keeper.lines[-1].replace("2 ", "9 ", 1))
        cut = program.run(tmp_path, "audit", "verify", "--anchor", keeper.url)
        assert cut.returncode == 1
        assert "truncated" in cut.stdout


def test_address_that_does_not_answer_is_an_error(tmp_path: Path) -> None:
    with Keeper().keeping() as keeper, serving(tmp_path) as service:
        SyncClient(service.url).request("reboot", "Reboot it")
        assert service.run(*BEGIN, keeper.url).returncode == 0
        keeper.status = 500
        troubled = service.run("audit", "verify", "--anchor", keeper.url)
        assert troubled.returncode != 0
        assert "500" in troubled.stderr


def test_address_that_has_forgotten_the_anchor_is_an_error(tmp_path: Path) -> None:
    with Keeper().keeping() as keeper, serving(tmp_path) as service:
        SyncClient(service.url).request("reboot", "Reboot it")
        assert service.run(*BEGIN, keeper.url).returncode == 0
        keeper.lines.clear()
        assert service.run("audit", "verify", "--anchor", keeper.url).returncode == 1
        assert keeper.lines == []


@pytest.mark.parametrize("removed", ["emptied", "deleted"])
def test_anchor_file_that_was_emptied_or_deleted_is_told_and_not_begun_again(
    tmp_path: Path, removed: str
) -> None:
    file = tmp_path / "anchors"
    with serving(tmp_path) as service:
        SyncClient(service.url).request("reboot", "Reboot it")
        assert service.run(*BEGIN, str(file)).returncode == 0
        file.write_text("\n") if removed == "emptied" else file.unlink()
        gone = service.run("audit", "verify", "--anchor", str(file), "--json")
        assert (gone.returncode, gone.stdout) == (1, "")
        assert "removed" in gone.stderr
        assert not file.exists() or not file.read_text().strip()


def test_anchor_can_be_begun_before_the_first_row(tmp_path: Path) -> None:
    file = tmp_path / "anchors"
    with serving(tmp_path) as service:
        assert service.run(*BEGIN, str(file)).returncode == 0
        assert service.run("audit", "verify", "--anchor", str(file)).returncode == 0
        SyncClient(service.url).request("reboot", "Reboot it")
        assert service.run("audit", "verify", "--anchor", str(file)).returncode == 0
    assert [line.split()[0] for line in file.read_text().splitlines()] == ["0", "1"]


def test_anchor_that_is_there_is_checked_also_when_a_new_one_may_begin(tmp_path: Path) -> None:
    file = tmp_path / "anchors"
    with serving(tmp_path) as service:
        SyncClient(service.url).request("reboot", "Reboot it")
        assert service.run(*BEGIN, str(file)).returncode == 0
        file.write_text(file.read_text().replace("1 ", "7 ", 1))
        cut = service.run(*BEGIN, str(file))
    assert (cut.returncode, "truncated" in cut.stdout) == (1, True)
