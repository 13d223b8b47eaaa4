"""What can go wrong with a call, and what is known then."""

from frontdesk.model import deliveries

REFUSED_TOKEN_SECONDS = 30.0
TOKENS = frozenset({"invalid_auth", "not_authed", "account_inactive", "token_revoked", "token_expired"})
PASSING = frozenset({"ratelimited", "rate_limited", "request_timeout", "missing_scope", "team_added_to_org"})
"""What may be otherwise later."""
TOKEN_REFUSED = (
    "Slack refuses the token: reinstall the app in your workspace, and set the tokens that it shows then"
)


class SlackError(Exception):
    """A call that did not end well."""

    @property
    def why(self) -> str:
        return str(self)


class SlackRefusal(SlackError):
    """The platform said no: nothing happened."""

    def __init__(self, code: str, wait: float | None = None, needed: str | None = None) -> None:
        super().__init__(f"{code} (the app needs the scope {needed})" if needed else code)
        self.code = code
        self.wait = wait

    @property
    def token_refused(self) -> bool:
        return self.code in TOKENS


class SlackUnreached(SlackError):
    """The request did not reach the platform."""


class SlackUnclear(SlackError):
    """The request left, and nobody knows what became of it."""


def judge(error: SlackError) -> deliveries.NotSent | deliveries.Unknown:
    """What is known of a message whose call failed."""
    if isinstance(error, SlackUnreached):
        return deliveries.NotSent(why=error.why)
    if not isinstance(error, SlackRefusal):
        return deliveries.Unknown(why=error.why)
    if error.token_refused:
        return deliveries.NotSent(
            why=TOKEN_REFUSED, retry_after_seconds=REFUSED_TOKEN_SECONDS, whole_account=True
        )
    hopeless = error.wait is None and error.code not in PASSING
    return deliveries.NotSent(why=error.why, retry_after_seconds=error.wait, hopeless=hopeless)
