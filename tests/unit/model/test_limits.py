"""The allowance as JSON."""

import json
import math

import pytest

from frontdesk.model import limits


def test_infinite_rest_is_null_in_json() -> None:
    info = limits.for_json(limits.limit_info(9, 0))
    assert json.loads(json.dumps(info, allow_nan=False))["remaining"] is None


@pytest.mark.parametrize("info", [limits.limit_info(3, 10), limits.limit_info(12, 10), limits.UNKNOWN])
def test_finite_rest_stays_as_it_is(info: dict[str, object]) -> None:
    assert limits.for_json(info) == info


def test_json_form_leaves_the_given_mapping_alone() -> None:
    info = limits.limit_info(9, 0)
    limits.for_json(info)
    assert info["remaining"] == math.inf
