"""``frontdesk confirm``: people decide before something dangerous is done."""

import click

from frontdesk.cli import LazyGroup

COMMANDS = {
    "serve": ("confirm.serve:serve_command", "Run the confirmation service alone."),
    "run": ("confirm.execute:run_command", "Run a command when somebody has approved exactly that."),
    "list": ("confirm.decide:list_command", "List requests and what became of them."),
    "show": ("confirm.decide:show_command", "Show a request, all of it."),
    "approve": ("confirm.decide:approve_command", "Allow an action."),
    "deny": ("confirm.decide:deny_command", "Refuse an action."),
    "erase": ("confirm.decide:erase_command", "Forget what a decided request was about."),
    "rules": ("confirm.rules:rules_command", "Show, add and revoke rules."),
    "pauses": ("confirm.pauses:pauses_command", "Show whose requests are not asked any more."),
    "lift": ("confirm.pauses:lift_command", "Have people asked for somebody again."),
    "mcp": ("confirm.mcp:mcp_command", "Offer confirmations to an agent as MCP tools."),
}


@click.group(cls=LazyGroup, table=COMMANDS)
def command() -> None:
    """Let people decide before something dangerous is done."""
