"""Keys and ids from outside are refused by everything that takes one."""

import inspect
from collections.abc import Callable
from typing import Any

import pytest

from frontdesk import EndReason, SessionStore, Viewer, errors
from frontdesk.model.transcripts import NewestRows
from tests.contracts.samples import LASTING, UNKNOWN_ID, UNKNOWN_KEY, user_says

UNSAFE = (
    *("../etc", "a/b", "a\\b", "a..b", "..", "/", "C:evil", "z:", "nul\x00", "line\nend", "\ud800"),
    *("x" * 5000, None, 5, b"bytes", ["a"]),
)
OTHERS: dict[str, Any] = {
    "key": UNKNOWN_KEY,
    "session_id": UNKNOWN_ID,
    "message": user_says(),
    "transcript": [user_says()],
    "override": {"model": "large"},
    "reason": EndReason.NEW,
    "viewer": Viewer.everything(),
    "title": "Plans",
    "platform_message_id": "1",
}
"""Something usable for every parameter that has no default."""
NOTHING = NewestRows(messages=[], is_whole=True)

Parameters = dict[str, inspect.Parameter]


def parameters_of(method: Callable[..., Any]) -> Parameters:
    return {name: each for name, each in inspect.signature(method).parameters.items() if name != "self"}


def methods_with(parameter: str) -> list[str]:
    """The public methods of the session service that take such a parameter."""
    methods = inspect.getmembers(SessionStore, inspect.iscoroutinefunction)
    return [name for name, method in methods if name[0] != "_" and parameter in parameters_of(method)]


def test_the_methods_are_found() -> None:
    assert {"reset_session", "switch_session", "update_session", "get_message_count"} <= set(
        methods_with("key")
    )
    assert {"switch_session", "load_transcript", "set_title"} <= set(methods_with("session_id"))


async def call(service: SessionStore, method: str, **given: Any) -> Any:
    function = getattr(service, method)
    parameters = parameters_of(function)
    needed = [name for name, each in parameters.items() if each.default is inspect.Parameter.empty]
    return await function(**{name: OTHERS[name] for name in needed} | given)


@pytest.fixture
async def service() -> Any:
    """What is refused reaches no store: any will do."""
    async with await SessionStore.open("sqlite:///:memory:", LASTING) as opened:
        yield opened


@pytest.mark.parametrize("method", methods_with("key"))
async def test_unsafe_key_is_refused(service: SessionStore, method: str) -> None:
    for key in UNSAFE:
        with pytest.raises(errors.UnsafeKey):
            await call(service, method, key=key)


@pytest.mark.parametrize("method", methods_with("session_id"))
async def test_unsafe_session_id_is_refused(service: SessionStore, method: str) -> None:
    for session_id in UNSAFE:
        with pytest.raises(errors.UnsafeSessionId):
            await call(service, method, session_id=session_id)


@pytest.mark.parametrize("method", sorted({*methods_with("key"), *methods_with("session_id")}))
async def test_safe_but_unknown_ones_create_nothing(service: SessionStore, method: str) -> None:
    try:
        answer = await call(service, method)
    except errors.UnknownSession:
        answer = None
    assert not answer or answer in (await service.get_message_limit_info(UNKNOWN_KEY), NOTHING)
    assert await service.list_sessions() == []
    assert not await service.has_any_sessions()


EMPTY_ANSWERS: dict[str, Any] = {
    **dict.fromkeys(
        ("get_session", "peek_session_id", "reset_session", "switch_session", "get_model_override"), None
    ),
    **dict.fromkeys(("suspend_session", "mark_resume_pending", "clear_resume_pending"), False),
    **dict.fromkeys(("update_session", "set_model_override", "reset_message_count"), None),
}


@pytest.mark.parametrize(("method", "answer"), EMPTY_ANSWERS.items(), ids=EMPTY_ANSWERS)
async def test_empty_key_is_one_that_nobody_knows(service: SessionStore, method: str, answer: Any) -> None:
    assert await call(service, method, key="") is answer
    assert await service.list_sessions() == []


@pytest.mark.parametrize("method", methods_with("session_id"))
async def test_empty_session_id_is_one_that_nobody_knows(service: SessionStore, method: str) -> None:
    try:
        assert await call(service, method, session_id="") in (None, [], {}, False, NOTHING)
    except errors.UnknownSession:
        assert method not in ("switch_session", "lookup_by_session_id", "find_session", "load_transcript")


async def test_empty_key_has_no_limits(service: SessionStore) -> None:
    assert await service.get_message_limit_info("") == await service.get_message_limit_info(UNKNOWN_KEY)
    assert await service.get_message_count("") == 0
