"""``frontdesk explain``: which conversation a message belongs to, and why."""

import sys
from pathlib import Path
from typing import Any

import click
import msgspec

from frontdesk import config, errors
from frontdesk.cli import output
from frontdesk.cli.asking import ask
from frontdesk.cli.output import Report
from frontdesk.model.policies import EndReason
from frontdesk.model.sources import ChatType, SessionSource

COLUMN = 9


@click.command()
@click.option("--platform", help="Such as telegram. Without it, the source is read as JSON from the input.")
@click.option("--chat-id")
@click.option("--chat-type", type=click.Choice([str(kind) for kind in ChatType]), help="dm, unless given.")
@click.option("--chat-id-alt", help="A stable alternative id of the chat.")
@click.option("--user-id")
@click.option("--user-id-alt", help="A stable alternative id of the person.")
@click.option("--thread-id")
@click.option("--scope-id", help="The guild, workspace or server.")
@click.option("--account", help="Which of our own accounts received the message.")
@click.option("--profile", help="The agent profile the message is routed to.")
@click.option("--store", "store_url", metavar="URL", help="Another store than the configured one.")
@output.answering
def command(config_file: Path | None, /, store_url: str | None, **fields: str | None) -> Report:
    """Show key, rule, policy and session for a message from there, and whether its sender is let in. Changes
    nothing.

    Give the source with options, or as JSON on the input:

    echo '{"platform": "slack", "chat_type": "group", "chat_id": "C1"}' | frontdesk explain
    """
    given = _given(fields)
    loaded = config.load(config_file)  # first: it knows the platforms of installed channels
    source = SessionSource.from_dict(given)
    told = ask(loaded, lambda office: office.explain(source.to_dict()), store_url)
    text = output.in_lines({"source": source.description} | _facts(told), COLUMN)
    return Report({"source": source.to_dict(), **told}, text, good=not told["refused"])


def _given(fields: dict[str, str | None]) -> dict[str, Any]:
    given = {name: value for name, value in fields.items() if value is not None}
    if "platform" in given:
        return given
    if given or sys.stdin.isatty():
        raise click.UsageError("Give --platform, or the source as JSON on the input.")
    try:
        return msgspec.json.decode(sys.stdin.buffer.read(), type=dict[str, Any])
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise errors.InvalidSource(why=f"the input is not a JSON object ({error})") from error


def _facts(explanation: dict[str, Any]) -> dict[str, str]:
    found, profile, rows = explanation["session"], explanation["profile"], explanation["routes"]
    return {
        "key": explanation["session_key"],
        "rule": explanation["rule"],
        "profile": f"{profile['name']} ({profile['why']})",
        **({"model": f"{explanation['model']} ({rows['model']})"} if "model" in rows else {}),
        **{what: rows[what] for what in ("prompt", "limits") if what in rows},
        "sender": _sender(explanation["access"]),
        "shared": "yes" if explanation["shared"] else "no",
        "policy": _policy(explanation["policy"]),
        "session": f"{found['session_id']}, {found['message_count']} messages" if found else "none yet",
        "next": _next(explanation),
    }


def _policy(policy: dict[str, Any]) -> str:
    daily = f"daily at {policy['at_hour']}:00 ({policy['timezone'] or 'local time'})"
    idle = f"after {policy['idle_minutes']} idle minutes"
    when = {"both": f"{daily}, {idle}", "daily": daily, "idle": idle, "none": "never by time"}
    most = policy["max_messages"]
    return f"{when[policy['mode']]}, {f'at {most} messages' if most else 'no message limit'}"


def _sender(access: dict[str, Any]) -> str:
    verdict = f"let in as {access['role']}" if access["allowed"] else "not let in"
    missing = "" if access["channel"] else "; no such channel is connected"
    return f"{access['who']}: {verdict}, by the rule {access['rule']}{missing}"


def _next(explanation: dict[str, Any]) -> str:
    session, refused = explanation["session"], explanation["refused"]
    if refused:
        return f"a message is refused: {' '.join(refused.split())}"
    if not explanation["access"]["allowed"]:
        return f"a message is refused: its sender is not let in ({explanation['access']['rule']})"
    if session is None:
        return "a message starts a session"
    reason = EndReason.SUSPENDED if session["suspended"] else explanation["reset_reason"]
    return f"a message starts a new session ({reason})" if reason else "a message goes on in this session"
