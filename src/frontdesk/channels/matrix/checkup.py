"""How an account on a homeserver is doing, for whoever looks for trouble."""

from collections.abc import Sequence

from frontdesk import errors
from frontdesk.channels.matrix import answers, connection
from frontdesk.channels.matrix.options import Options
from frontdesk.model import findings
from frontdesk.model.findings import Finding

UNSIGNED = "Without recovery_key the device is not signed, and the clients of others may not let it read."
NOT_YET_SIGNED = "The device is not signed yet: that is done when the gateway connects."
SIGNED = "The device is signed by its account: the clients of others let it read encrypted rooms."


async def examine(options: Options, account: str | None, home: str | None) -> Sequence[Finding]:
    """Who we are there, and whether encrypted rooms can be read."""
    try:
        server = connection.Homeserver(options, account)
    except errors.MissingSecret as error:
        return [findings.failed(str(error))]
    try:
        us = await server.who()
        found = [Finding(text=f"This is {us.user_id}, on the device {us.device_id}.")]
        if home and us.user_id not in await server.members(home):
            found.append(findings.failed(f"It is not in the home channel {home}: invite it there."))
        keys = await server.keys_of(us.user_id)
    except connection.FAILURES as error:
        why = f"{type(error).__name__} {error}"
        shown = connection.LOGGED_OUT if connection.is_revoked(error) else why
        return [findings.failed(f"The homeserver cannot be used: {shown}")]
    finally:
        await server.close()
    if options.encryption:
        found.append(_examine_keys(options, is_signed=answers.is_signed(keys, us)))
    return found


def _examine_keys(options: Options, *, is_signed: bool) -> Finding:
    if not connection.can_encrypt():
        return findings.warning(f"Encrypted rooms cannot be read: {connection.CANNOT_ENCRYPT}.")
    if is_signed:
        return Finding(text=SIGNED)
    return findings.note(UNSIGNED if options.recovery_key is None else NOT_YET_SIGNED)
