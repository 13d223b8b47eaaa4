"""What can become of a call, and what that says of a message."""

from http import HTTPStatus

from frontdesk.model.deliveries import NotSent, Unknown

REFUSED_TOKEN_SECONDS = 30.0
WORTH_ANOTHER_TRY = (HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.CONFLICT, HTTPStatus.TOO_MANY_REQUESTS)
TOKEN_REFUSED = "Discord refuses the bot's token: reset it in the Developer Portal (Bot, Reset Token)"


class RestFailure(Exception):
    """A call brought nothing."""


class RestRefused(RestFailure):
    """The platform said no: nothing happened."""

    def __init__(
        self, status: int, why: str, code: int = 0, wait: float | None = None, everywhere: bool = False
    ) -> None:
        super().__init__(why)
        self.status = status
        self.code = code
        self.wait = wait
        self.everywhere = everywhere

    @property
    def token_refused(self) -> bool:
        return self.status == HTTPStatus.UNAUTHORIZED

    @property
    def is_for_good(self) -> bool:
        """Whether asking again would bring the same."""
        server = self.status >= HTTPStatus.INTERNAL_SERVER_ERROR
        return not (self.wait or server or self.token_refused or self.status in WORTH_ANOTHER_TRY)


class RestNeverLeft(RestFailure):
    """The request did not reach the platform."""


class RestUnclear(RestFailure):
    """The request left, and nobody knows what became of it."""


def judge(error: RestFailure) -> NotSent | Unknown:
    """What is known of a message whose call failed."""
    if isinstance(error, RestNeverLeft):
        return NotSent(why=str(error))
    if not isinstance(error, RestRefused) or error.status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        return Unknown(why=str(error))
    if error.token_refused:
        return NotSent(why=TOKEN_REFUSED, retry_after_seconds=REFUSED_TOKEN_SECONDS, whole_account=True)
    return NotSent(
        why=str(error),
        retry_after_seconds=error.wait,
        whole_account=error.everywhere,
        hopeless=error.is_for_good,
    )


def why_troubled(error: Exception) -> str:
    """For whoever asks what is wrong."""
    if isinstance(error, RestRefused):
        return TOKEN_REFUSED if error.token_refused else f"Discord says: {error}"
    return f"Discord cannot be reached: {error}"
