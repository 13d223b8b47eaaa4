"""What a pass may be called."""

import pytest

from frontdesk import errors
from frontdesk.model import passes


def test_pass_is_not_named_like_the_id_of_another() -> None:
    for name in (passes.new_id(), "p_12", "P_AB"):
        with pytest.raises(errors.InvalidInput, match="id of a pass"):
            passes.check_name(name)


@pytest.mark.parametrize("name", ["robot", "p", "p_robot", "ann@example.org"])
def test_pass_has_a_name_that_people_know(name: str) -> None:
    assert passes.check_name(name) == name
