"""``frontdesk send``: a message to a chat that nobody asked for."""

import sys

import click

from frontdesk.app.office import Office
from frontdesk.cli import output
from frontdesk.cli.asking import keeping
from frontdesk.cli.output import Report
from frontdesk.flow.sending import MOST_CHARACTERS

STANDARD_INPUT = "-"
EXAMPLES = output.examples(
    'frontdesk send telegram "The backup is done."',
    "df -h | frontdesk send matrix:!room:example.org -",
    'frontdesk send origin --session 20260504_120000_0a1b2c3d "Your report is ready."',
)


@click.command(epilog=EXAMPLES)
@click.argument("to")
@click.argument("text")
@click.option("--session", "session_id", metavar="ID", help="Whose origin is meant, where TO is origin.")
@click.option(
    "--key", help="The same key to the same chat is sent once, however often the command is called with it."
)
@click.option("--markdown", is_flag=True, help="TEXT is Markdown; otherwise it is shown as it is.")
@keeping
async def command(
    office: Office, to: str, text: str, session_id: str | None, key: str | None, markdown: bool
) -> Report:
    """Send TEXT to a chat; - reads it from the standard input.

    TO is a platform, for its home channel; platform:chat_id or platform:chat_id:thread_id; or origin, with
    --session. It is on disk when the command ends. Without a running gateway it is sent when one starts.
    """
    said = _read() if text == STANDARD_INPUT else text
    sent = await office.send(to, said, session_id, key, markdown)
    if sent["repeated"]:
        return Report(sent, f"{sent['id']} was handed in before; it is {sent['state']}.")
    return Report(sent, f"{sent['id']} goes to {output.account(sent)}, chat {sent['chat_id']}.")


def _read() -> str:
    """What is longer than any message may be is refused for its length."""
    return sys.stdin.read(MOST_CHARACTERS + 1).rstrip("\n")
