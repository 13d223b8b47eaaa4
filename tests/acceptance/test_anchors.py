"""Anchors of the audit log that are kept at an address."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from frontdesk.confirm import SyncClient
from tests.acceptance import program
from tests.acceptance.test_confirm import serving


class Keeper:
    """Keeps the lines it is told."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.status = 200
        keeper = self

        class Handler(BaseHTTPRequestHandler):
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

            def log_message(self, format: str, *arguments: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}/anchor"

    @contextmanager
    def keeping(self) -> Iterator["Keeper"]:
        thread = threading.Thread(target=self._server.serve_forever)
        thread.start()
        try:
            yield self
        finally:
            self._server.shutdown()
            thread.join()
            self._server.server_close()


def test_anchor_at_an_address_grows_and_finds_what_was_cut_off(tmp_path: Path) -> None:
    with Keeper().keeping() as keeper:
        with serving(tmp_path) as service:
            SyncClient(service.url).request("reboot", "Reboot it")
            assert service.run("audit", "verify", "--anchor", keeper.url).returncode == 0
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
        assert service.run("audit", "verify", "--anchor", keeper.url).returncode == 0
        keeper.status = 500
        troubled = service.run("audit", "verify", "--anchor", keeper.url)
        assert troubled.returncode != 0
        assert "500" in troubled.stderr
