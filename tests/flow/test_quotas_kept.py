"""Two programs that answer each other come to an end, through a whole gateway."""

import pytest

from frontdesk import errors
from frontdesk.flow.intake import ENOUGH
from frontdesk.model.chats import Quota
from tests.flow.harness import Notebook, open_house

MOST = 4


async def test_program_that_answers_every_answer_is_told_once_and_answered_no_more(store_url: str) -> None:
    notebook = Notebook(quotas=(Quota(most=MOST, seconds=3600),))
    async with open_house(store_url, notebook=notebook) as house:
        said = "Hello"
        for _ in range(MOST):
            said = await house.ask(said)
        for _ in range(2):
            with pytest.raises(errors.NotAllowed, match="too many answers"):
                await house.say(said)
        assert await notebook.wait_for(1, "notice") == [ENOUGH]
        assert len(await notebook.wait_for(MOST)) == MOST
        assert await house.ask("Hello", "bob") == "echo: Hello"
        assert house.gateway.parts.refusals.counts == {"too many answers": 2}
    assert notebook.notices == [ENOUGH]


async def test_message_that_comes_again_is_known_again_however_much_was_answered(store_url: str) -> None:
    notebook = Notebook(quotas=(Quota(most=1, seconds=3600),))
    async with open_house(store_url, notebook=notebook) as house:
        first = await house.say("Hello", event_id="one")
        assert (await house.say("Hello", event_id="one")).turn_id == first.turn_id
        with pytest.raises(errors.NotAllowed):
            await house.say("More", event_id="two")
