"""``frontdesk confirm rules``: what is refused, asked for and allowed beforehand."""

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import quote

import click

from frontdesk import errors
from frontdesk.cli import output
from frontdesk.cli.asking import JSON
from frontdesk.cli.confirm import reaching
from frontdesk.confirm import steps
from frontdesk.formats import canonical
from frontdesk.model.rules import Comparison, Effect

TESTS = {"=": Comparison.EQUALS, "~": Comparison.LIKE, ">": Comparison.ABOVE, "<": Comparison.BELOW}
UNITS = {"m": timedelta(minutes=1), "h": timedelta(hours=1), "d": timedelta(days=1)}

_CONDITION = re.compile(r"(?P<argument>[^=~<>]+)(?:(?P<test>[=~<>])(?P<value>.*))?", re.DOTALL)
_SPAN = re.compile(r"(?P<number>[1-9][0-9]{0,4})(?P<unit>[mhd])")

Plain = dict[str, Any]


@click.group("rules", invoke_without_command=True)
@click.pass_context
def rules_command(context: click.Context) -> None:
    """Show, add and revoke rules. Without a command: show them."""
    if context.invoked_subcommand is None:
        context.invoke(list_rules)


@rules_command.command("list")
@reaching.URL
@JSON
@click.pass_obj
def list_rules(config_file: Path | None, url: str | None = None, as_json: bool = False) -> None:
    """Show the rules that hold, oldest first."""
    found = reaching.ask(config_file, url, steps.say("GET", "/rules"))["rules"]
    if as_json:
        output.show_json(found)
    elif found:
        output.show_table(("ID", "EFFECT", "ACTION", "WHERE", "TERMS", "UNTIL", "BY"), list(map(_row, found)))
    else:
        output.show("There are no rules: everything is asked.")


def _row(rule: Plain) -> tuple[object, ...]:
    return (
        rule["id"],
        rule["effect"],
        rule["action"] or ("exactly one" if rule["digest"] else "any"),
        ", ".join(_where(rule)) or "-",
        ", ".join(_terms(rule)) or "-",
        output.local_time(rule["expires_at"]) if rule["expires_at"] else "-",
        rule["created_by"],
    )


def _where(rule: Plain) -> list[str]:
    signs = {str(test): sign for sign, test in TESTS.items()}
    conditions = [
        f"{each['argument']}{signs[each['test']]}{canonical.canonical(each['value']).decode()}"
        if each["test"] in signs
        else each["argument"]
        for each in rule["conditions"]
    ]
    digest = [f"digest {rule['digest'][:12]}"] if rule["digest"] else []
    return [*conditions, *digest, *([f"session {rule['session_key']}"] if rule["session_key"] else [])]


def _terms(rule: Plain) -> list[str]:
    terms = [f"{rule['quorum']} approvers"] if rule["quorum"] > 1 else []
    terms += [f"by {', '.join(rule['approvers'])}"] if rule["approvers"] else []
    terms += ["with a reason"] if rule["needs_reason"] else []
    if rule["escalate_after_seconds"] is not None:
        terms.append(f"after {rule['escalate_after_seconds']} s also {', '.join(rule['escalate_to'])}")
    return terms


@rules_command.command("add")
@click.argument("effect", type=click.Choice([str(each) for each in Effect]))
@click.option("--action", help="The action's name; * and ? stand for any characters.")
@click.option("--digest", metavar="HEX", help="Exactly the action with this digest.")
@click.option(
    "--where",
    "conditions",
    multiple=True,
    metavar="ARGUMENT[=~<>VALUE]",
    help="An argument that is there, equals a value, is like a pattern, is below or above a number.",
)
@click.option("--session", "session_key", metavar="KEY", help="Only in this conversation.")
@click.option("--quorum", type=click.IntRange(1), help="How many people must approve.")
@click.option(
    "--approver", "approvers", multiple=True, metavar="NAME", help="Who may decide: token:ann, say."
)
@click.option("--needs-reason", is_flag=True, help="Whoever decides says why.")
@click.option(
    "--escalate-after", type=click.IntRange(0), metavar="SECONDS", help="When others may decide, too."
)
@click.option("--escalate-to", multiple=True, metavar="NAME", help="Who that is.")
@click.option(
    "--expires-in", metavar="SPAN", help="30m, 12h, 7d: how long it holds. What allows needs an end."
)
@reaching.URL
@JSON
@click.pass_obj
def add_rule(config_file: Path | None, /, url: str | None, as_json: bool, **said: Any) -> None:
    """Add a rule that denies, asks (on terms) or allows. The ten most dangerous actions are always asked."""
    rule = reaching.ask(config_file, url, steps.say("POST", "/rules", _rule(**said)))
    if as_json:
        output.show_json(rule)
    else:
        output.show(f"Rule {rule['id']} holds.")


def _rule(
    *, conditions: tuple[str, ...], escalate_after: int | None, expires_in: str | None, **plain: Any
) -> Plain:
    """What is said about a rule, without what is not."""
    rule = plain | {
        "conditions": list(map(_condition, conditions)),
        "escalate_after_seconds": escalate_after,
        "expires_at": _end(expires_in) if expires_in else None,
    }
    return {name: value for name, value in rule.items() if value is not None}


def _condition(text: str) -> Plain:
    found = _CONDITION.fullmatch(text)
    if not found:
        raise click.BadParameter(f"{text!r}: use ARGUMENT, ARGUMENT=VALUE, ~PATTERN, >NUMBER or <NUMBER")
    argument = found["argument"].strip()
    if found["test"] is None:
        return {"argument": argument, "test": str(Comparison.PRESENT)}
    test = TESTS[found["test"]]
    value = found["value"] if test is Comparison.LIKE else _value(found["value"])
    return {"argument": argument, "test": str(test), "value": value}


def _value(text: str) -> Any:
    """A number, true, false, null or a JSON text as what it is, anything else as a text."""
    try:
        return canonical.read_strict(text.encode())
    except errors.InexactJson:
        return text


def _end(span: str) -> str:
    found = _SPAN.fullmatch(span.strip())
    if not found:
        raise click.BadParameter(f"{span!r}: use 30m, 12h or 7d")
    return (datetime.now(UTC) + int(found["number"]) * UNITS[found["unit"]]).isoformat()


@rules_command.command("revoke")
@click.argument("rule_id", metavar="ID")
@reaching.URL
@click.pass_obj
def revoke_rule(config_file: Path | None, rule_id: str, url: str | None) -> None:
    """Revoke a rule; what it allowed before stays done."""
    reaching.ask(config_file, url, steps.say("DELETE", f"/rules/{quote(rule_id, safe='')}"))
    output.show(f"Rule {rule_id} is revoked.")
