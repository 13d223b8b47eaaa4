"""The service's usual port inside the gateway, when another program has it, and addresses it may not have."""

import asyncio
import logging
import socket
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import httpx
import pytest
from msgspec.structs import replace

from frontdesk import ConfirmationServer, SessionStore, config, errors
from frontdesk.app import build
from frontdesk.app.confirmations import prepare_keys
from frontdesk.app.gateway import Gateway
from frontdesk.config import Config
from frontdesk.model.confirmations import Mode
from frontdesk.web.confirmations.serving import check_host, make_served, serving_beside
from tests.acceptance import program

HOST = "127.86.0.1"
"""Of loopback, where nobody else takes a port that is free for a moment."""
PATIENCE_SECONDS = 60.0


def configured(home: Path, more: str = "") -> Config:
    file = home / "frontdesk.toml"
    file.write_text(f'home = "{home}"\n[agent]\ndriver = "scripted"\n[confirm]\nhost = "{HOST}"\n{more}')
    return config.load(file)


@asynccontextmanager
async def gateway_of(loaded: Config) -> AsyncIterator[Gateway]:
    async with await SessionStore.open("sqlite:///:memory:", loaded.gateway) as sessions:
        agent = build.make_agent(loaded)
        yield Gateway(sessions, agent, [])
        await agent.close()


def beside(gateway: Gateway, loaded: Config) -> AbstractAsyncContextManager[str | None]:
    """The service of a gateway, on its port as soon as that is to be had."""
    keys = prepare_keys(loaded.home)
    served = make_served(gateway.parts.confirmations, keys, loaded.confirm.people, None)
    return serving_beside(gateway, served, loaded, retry_seconds=0.01)


async def is_answered(url: str) -> bool:
    async with httpx.AsyncClient(trust_env=False) as http:
        try:
            return (await http.get(f"{url}/health")).is_success
        except httpx.TransportError:
            return False


async def until_answered(url: str) -> None:
    while True:
        if await is_answered(url):
            return
        await asyncio.sleep(0.01)


async def test_usual_port_is_served_once_the_other_program_has_gone(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    loaded = configured(tmp_path)
    with socket.create_server((HOST, 0)) as taken:
        port = taken.getsockname()[1]
        usual = replace(loaded, confirm=replace(loaded.confirm, port=port))
        async with gateway_of(usual) as gateway, beside(gateway, usual) as url:
            assert url is None
            taken.close()
            async with asyncio.timeout(PATIENCE_SECONDS):
                await until_answered(f"http://{HOST}:{port}")
    assert not await is_answered(f"http://{HOST}:{port}")
    events = [record.getMessage() for record in caplog.records]
    assert sum("confirmations_not_served" in event for event in events) == 1
    [served] = [event for event in events if "confirmations_served" in event]
    assert "mode=solo" in served


async def test_chosen_port_that_is_taken_is_an_error(tmp_path: Path) -> None:
    with socket.create_server((HOST, 0)) as taken:
        loaded = configured(tmp_path, f"port = {taken.getsockname()[1]}\n")
        async with gateway_of(loaded) as gateway:
            with pytest.raises(errors.CannotListen):
                async with beside(gateway, loaded):
                    pass


EXPOSED = ["0.0.0.0", "::", "", "192.0.2.7", "2001:db8::1", "desk.example"]


@pytest.mark.parametrize("host", EXPOSED)
async def test_solo_listens_for_other_machines_only_with_names(tmp_path: Path, host: str) -> None:
    loaded = configured(tmp_path)
    exposed = replace(loaded, confirm=replace(loaded.confirm, host=host, port=0))
    async with gateway_of(exposed) as gateway:
        with pytest.raises(errors.ExposedService, match=r"--mode team.*server\.names"):
            async with beside(gateway, exposed):
                pass
    server = ConfirmationServer(host, 0, ":memory:", home=tmp_path, page_port=0)
    with pytest.raises(errors.ExposedService, match="names of ConfirmationServer"):
        await server.start()
    check_host(Mode.SOLO, host, ["desk.example"])
    for mode in (Mode.TEAM, Mode.STRICT):
        check_host(mode, host, ())


async def test_server_of_a_program_has_the_names_that_it_is_told(tmp_path: Path) -> None:
    server = ConfirmationServer("0.0.0.0", 0, ":memory:", home=tmp_path, page_port=0, names=("desk.example",))
    url = (await server.start()).replace("0.0.0.0", HOST)
    assert server.addresses
    assert server.addresses.page_url
    page = server.addresses.page_url.replace("0.0.0.0", HOST)
    async with httpx.AsyncClient(trust_env=False) as http:
        for address in (f"{url}/health", f"{page}/openapi.json"):
            answers = [await http.get(address, headers={"host": each}) for each in NAMED]
            assert [answer.status_code for answer in answers] == [200, 200, 421]
    await server.stop()


NAMED = ("desk.example", HOST, "rebound.example")


@pytest.mark.parametrize("host", ["127.0.0.1", "127.86.0.1", "::1", "localhost"])
def test_solo_listens_on_this_machine(host: str) -> None:
    check_host(Mode.SOLO, host, ())


def test_serve_and_doctor_name_the_way_out(tmp_path: Path) -> None:
    for arguments in (("confirm", "serve", "--host", "0.0.0.0", "--port", "0"), ("doctor",)):
        done = program.run(tmp_path, *arguments, CONFIRMATION_HOST="0.0.0.0")
        told = done.stdout + done.stderr
        assert done.returncode == 1
        assert "mode team" in told
        assert "server.names" in told
