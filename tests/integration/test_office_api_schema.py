"""The API of the public port: schemathesis finds nothing against its document."""

import importlib.util
from pathlib import Path

import pytest

from frontdesk.model.access import Role
from tests import counts
from tests.counts import count
from tests.generating import count_operations, count_requests, run_schemathesis
from tests.integration.test_confirmations_schema import TOKEN
from tests.integration.visiting import open_reception

# What is right in form may still meet a state, or name something that there is none of. A cursor, a code, a
# principal have forms that a schema does not say.
SETTINGS = """
[checks]
positive_data_acceptance.expected-statuses = ["2xx", 400, 403, 404, 409, 410, 412, 422, 429]
"""
UNENDING = "^/api/v1/(events|turns/.*/events)$"


@pytest.mark.prove
@pytest.mark.timeout(count(600, 3600))
@pytest.mark.skipif(not importlib.util.find_spec("schemathesis"), reason="schemathesis is not installed")
@pytest.mark.parametrize("role", [Role.ADMINISTRATOR, Role.USER])
async def test_schemathesis_finds_nothing_against_the_api(
    role: Role, tmp_path: Path, tell: counts.Tell
) -> None:
    async with open_reception("sqlite:///:memory:") as reception:
        for name in ("ann", "bob"):
            await reception.house.ask("!say hello", name)
        visitor = await reception.visitor(role, "matrix:ann")
        token = visitor.headers["authorization"].removeprefix("Bearer ")
        settings = tmp_path / "schemathesis.toml"
        settings.write_text(SETTINGS + TOKEN.format(scheme="token", token=token), encoding="utf-8")
        only = ("--include-path-regex", "^/api/v1/", "--exclude-path-regex", UNENDING)
        told = await run_schemathesis(reception.nobody, settings, *only)
        assert (await reception.nobody.get("/readyz")).status_code == 200
    assert count_operations(told)
    tell("requests made from the description of the API", count_requests(told))
