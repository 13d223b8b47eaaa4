"""Why a run failed, in words for the user and with the question whether trying again can help."""

from pydantic_ai import exceptions

from frontdesk.model import events

MAX_CHARACTERS = 500
TOO_MANY_REQUESTS, REQUEST_TIMEOUT, SERVER_ERRORS = 429, 408, 500
RETRYABLE = (
    exceptions.ModelRateLimitError,
    exceptions.ModelUnavailableError,
    exceptions.ModelServerError,
    exceptions.ModelConnectionError,
)
FOREIGN = (exceptions.AgentRunError, exceptions.UserError)


def of(error: exceptions.AgentRunError | exceptions.UserError) -> events.Failed:
    """The failure. What a provider wrote in its answer stays out of it: it may name keys and accounts."""
    if isinstance(error, exceptions.ModelAPIError):
        message = _refusal(error)
        detail = f"{message}, model {error.model_name!r}"[:MAX_CHARACTERS]
        return events.Failed(message=message, retryable=_is_passing(error), detail=detail)
    name = type(error).__name__
    detail = f"{name}: {error.message}"[:MAX_CHARACTERS]
    return events.Failed(message=f"The agent failed: {name}", detail=detail)


def _refusal(error: exceptions.ModelAPIError) -> str:
    if isinstance(error, exceptions.ModelHTTPError) and error.status_code == TOO_MANY_REQUESTS:
        return "the model takes no more requests for now; try again later (status 429)"
    status = f", status {error.status_code}" if isinstance(error, exceptions.ModelHTTPError) else ""
    return f"The model failed: {type(error).__name__}{status}"


def _is_passing(error: exceptions.ModelAPIError) -> bool:
    if isinstance(error, exceptions.ModelQuotaExceededError):
        return False
    if isinstance(error, RETRYABLE):
        return True
    status = error.status_code if isinstance(error, exceptions.ModelHTTPError) else 0
    return status in (TOO_MANY_REQUESTS, REQUEST_TIMEOUT) or status >= SERVER_ERRORS
