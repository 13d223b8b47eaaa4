"""A service in this process, and somebody who decides about whatever waits, over real HTTP."""

from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import httpx
import pytest

from frontdesk import ConfirmationServer

PATIENCE_SECONDS = 60.0


class Approver:
    def __init__(self, url: str, token: str) -> None:
        headers = {"authorization": f"Bearer {token}"}
        self._http = httpx.Client(base_url=url, headers=headers, trust_env=False, timeout=PATIENCE_SECONDS)

    def get(self, path: str) -> Any:
        return self._http.get(path).raise_for_status().json()

    def post(self, path: str, **said: Any) -> Any:
        return self._http.post(path, json=said).raise_for_status().json()

    def pending(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.get("/confirm?status=pending&limit=500")["confirmations"]
        return found

    def wait_for_one(self) -> dict[str, Any]:
        """The newest request that waits, as soon as there is one."""
        with self._http.stream("GET", "/events", headers={"last-event-id": "0"}) as events:
            for _ in events.iter_lines():
                if found := self.pending():
                    return found[0]
        raise AssertionError("the stream of events ended")

    def decide(self, verb: str = "approve", **said: Any) -> dict[str, Any]:
        """Decide about the next request that waits."""
        asked = self.wait_for_one()
        self.post(f"/confirm/{asked['id']}/{verb}", **said)
        return asked

    def close(self) -> None:
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ConfirmationServer]:
    """A service that takes any number of requests; its home is the test's folder."""
    server = ConfirmationServer(port=0, db_path=tmp_path / "state.db", rate_limit=100_000, home=tmp_path)
    server.start_background()
    yield server
    server.stop()


@pytest.fixture
def url(server: ConfirmationServer) -> str:
    assert server.addresses
    return server.addresses.url


@pytest.fixture
def approver(server: ConfirmationServer, url: str) -> Iterator[Approver]:
    with Approver(url, server.keys.token()) as approver:
        yield approver
