"""What addresses and headers of HTTP hold: hosts, tokens, how long to wait."""

from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from frontdesk import errors

MIN_CREDENTIAL_CHARACTERS = 20


def url_of(host: str, port: int, scheme: str = "http") -> str:
    return f"{scheme}://{f'[{host}]' if ':' in host else host}:{port}"


def is_token(text: str) -> bool:
    """Whether a header can hold it: visible ASCII characters."""
    return bool(text) and text.isascii() and text.isprintable() and " " not in text


def check_credential(secret: str) -> str:
    """The token of somebody, or its digest. InvalidInput for one that could be guessed."""
    if len(secret) < MIN_CREDENTIAL_CHARACTERS:
        why = f"it is shorter than {MIN_CREDENTIAL_CHARACTERS} characters, and could be guessed"
        raise errors.InvalidInput(what="The token", why=why)
    return secret


def retry_seconds(retry_after: str | None) -> float | None:
    """The wait in a Retry-After header, which holds whole seconds or a date; None for anything else."""
    if retry_after is None:
        return None
    if retry_after.isascii() and retry_after.isdigit():
        return float(retry_after)
    try:
        moment = parsedate_to_datetime(retry_after)
        aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        return max((aware.astimezone(UTC) - datetime.now(UTC)).total_seconds(), 0.0)
    except (ValueError, OverflowError):
        return None
