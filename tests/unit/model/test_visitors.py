import pytest

from frontdesk import errors
from frontdesk.model.access import Role
from frontdesk.model.visitors import Need, Visitor

ANN = Visitor(id="telegram:7", name="ann", role=Role.USER)


@pytest.mark.parametrize(
    ("need", "takes"),
    [(Need.ADMINISTER, "this takes the role administrator"), (Need.DECIDE, "roles approver, administrator")],
)
def test_refusal_names_the_roles_that_may(need: Need, takes: str) -> None:
    with pytest.raises(errors.NotAllowed, match=f"{takes}$"):
        ANN.require(need)
