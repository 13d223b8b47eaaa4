"""The decorator: a function that runs only when people said yes to exactly this call of it."""

import functools
import inspect
from collections.abc import Callable, Collection
from typing import Any, ParamSpec, TypeVar, Unpack

from frontdesk import errors
from frontdesk.confirm.client import Client, SyncClient
from frontdesk.confirm.records import Redeemed
from frontdesk.confirm.steps import Options

P = ParamSpec("P")
T = TypeVar("T")

Describe = str | Callable[..., str]


def confirmed(
    action: str | None = None,
    *,
    description: Describe | None = None,
    unseen: Collection[str] = (),
    client: Client | SyncClient | None = None,
    **options: Unpack[Options],
) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Ask before each call; run it with the arguments that were approved, or not at all.

    The arguments are the details that people see, so they must be JSON. The function is called with what
    the approved bytes hold: a tuple has become a list, a number without a fraction a whole one. Arguments
    named in ``unseen`` (``self``, a connection) are passed on as they are and shown to nobody.

    The action is called like the function and described by its docstring, unless told otherwise;
    ``description`` may be a function of the same arguments. Denied or Expired when the answer is no.
    """

    def decorate(function: Callable[P, T]) -> Callable[P, T]:
        gate = _Gate(function, action, description, frozenset(unseen), options)
        is_async = inspect.iscoroutinefunction(function)
        asked: Any = client or (Client() if is_async else SyncClient())
        if isinstance(asked, Client) is not is_async:
            right, wrong = ("Client", "SyncClient") if is_async else ("SyncClient", "Client")
            why = f"{gate.name} is {'async' if is_async else 'not async'}; use a {right}"
            raise errors.InvalidInput(what=wrong, why=why)

        async def ask_and_await(*args: Any, **kwargs: Any) -> Any:
            call = gate.bind(args, kwargs)
            return await gate.carry_out(call, await asked.obtain(**gate.wish(call)))

        def ask_and_call(*args: Any, **kwargs: Any) -> Any:
            call = gate.bind(args, kwargs)
            return gate.carry_out(call, asked.obtain(**gate.wish(call)))

        return functools.wraps(function)(ask_and_await if is_async else ask_and_call)

    return decorate


class _Gate:
    """A function, and how a call of it is asked for."""

    def __init__(
        self,
        function: Callable[..., Any],
        action: str | None,
        description: Describe | None,
        unseen: frozenset[str],
        options: Options,
    ) -> None:
        self.name = function.__name__
        self._function = function
        self._signature = inspect.signature(function)
        self._action = action or self.name
        self._description = description or _first_line(function) or f"Call {self.name}"
        self._unseen = unseen
        self._options = options
        if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
            raise errors.InvalidInput(what=self.name, why="a generator runs later than it is called")
        if unknown := unseen - set(self._signature.parameters):
            raise errors.InvalidInput(
                what="unseen", why=f"{self.name} has no argument {', '.join(sorted(unknown))}"
            )

    def bind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> inspect.BoundArguments:
        bound = self._signature.bind(*args, **kwargs)
        bound.apply_defaults()
        return bound

    def wish(self, call: inspect.BoundArguments) -> dict[str, Any]:
        """What is asked for: every argument that people see, the defaults too."""
        described = self._description
        text = described if isinstance(described, str) else described(*call.args, **call.kwargs)
        seen = {name: value for name, value in call.arguments.items() if name not in self._unseen}
        return {"action": self._action, "description": text, "details": seen, **self._options}

    def carry_out(self, call: inspect.BoundArguments, approved: Redeemed) -> Any:
        """Call the function with what was approved; the caller's own values may be others by now."""
        arguments, details = {}, approved.details
        for name, parameter in self._signature.parameters.items():
            value = call.arguments[name] if name in self._unseen else details[name]
            arguments[name] = tuple(value) if parameter.kind is parameter.VAR_POSITIONAL else value
        bound = inspect.BoundArguments(self._signature, arguments)
        return self._function(*bound.args, **bound.kwargs)


def _first_line(function: Callable[..., Any]) -> str:
    return (inspect.getdoc(function) or "").strip().partition("\n")[0]
