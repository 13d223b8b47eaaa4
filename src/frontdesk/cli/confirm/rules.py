"""``frontdesk confirm rules``: what is refused, asked for and allowed beforehand."""

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple
from urllib.parse import quote

import click

from frontdesk import errors
from frontdesk.cli import output
from frontdesk.cli.confirm import reaching
from frontdesk.cli.confirm.reaching import ServiceDesk
from frontdesk.cli.output import Report
from frontdesk.config import Config
from frontdesk.config.confirm import OWNER, TERMINAL
from frontdesk.formats import canonical
from frontdesk.model.confirmations import DIGEST, MAX_TIMEOUT_SECONDS, TOKEN
from frontdesk.model.people import Person, bare_name
from frontdesk.model.rules import MAX_QUORUM, Comparison, Effect


class Sign(NamedTuple):
    """A comparison as it is typed."""

    test: Comparison
    example: str
    takes: type = object
    """Texts as they are typed, numbers alone, or anything that JSON can say."""


SIGNS = {
    "=": Sign(Comparison.EQUALS, "VALUE"),
    "~": Sign(Comparison.LIKE, "PATTERN", str),
    ">": Sign(Comparison.ABOVE, "5", float),
    "<": Sign(Comparison.BELOW, "5", float),
}
FORMS = ("ARGUMENT", *(f"ARGUMENT{sign}{each.example}" for sign, each in SIGNS.items()))
UNITS = {"m": timedelta(minutes=1), "h": timedelta(hours=1), "d": timedelta(days=1)}
TERMS = ("quorum", "approvers", "needs_reason", "escalate_after_seconds", "escalate_to")
"""What only a rule that asks can want."""

_SIGNS = re.escape("".join(SIGNS))
_CONDITION = re.compile(rf"(?P<argument>[^{_SIGNS}]+)(?:(?P<test>[{_SIGNS}])(?P<value>.*))?", re.DOTALL)
_SPAN = re.compile(r"(?P<number>[1-9][0-9]{0,4})(?P<unit>[mhd])")
_NAME = re.compile(rf"{TERMINAL}|[^\s:]+:\S.*")

Plain = dict[str, Any]


class RulesGroup(click.Group):
    """Without a command, the rules are listed."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        listed = not args or (args[0].startswith("-") and args[0] not in ctx.help_option_names)
        return super().parse_args(ctx, ["list", *args] if listed else args)


@click.group("rules", cls=RulesGroup, epilog=output.examples("frontdesk confirm rules"))
def rules_command() -> None:
    """Show, add and revoke rules. Without a command: show them."""


@rules_command.command("list", epilog=output.examples("frontdesk confirm rules list --json"))
@reaching.answering
def list_rules(service: ServiceDesk) -> Report:
    """Show the rules that hold, oldest first."""
    found = service.say("GET", "/rules")["rules"]
    return output.listed(found, _row, "There are no rules: everything is asked.")


def _row(rule: Plain) -> Plain:
    return {
        "ID": rule["id"],
        "EFFECT": rule["effect"],
        "ACTION": rule["action"] or ("exactly one" if rule["digest"] else "any"),
        "WHERE": ", ".join(_where(rule)) or "-",
        "TERMS": ", ".join(_terms(rule)) or "-",
        "UNTIL": output.local_time(rule["expires_at"]) if rule["expires_at"] else "-",
        "BY": rule["created_by"],
    }


def _where(rule: Plain) -> list[str]:
    signs = {str(each.test): sign for sign, each in SIGNS.items()}
    conditions = [
        f"{each['argument']}{signs[each['test']]}{canonical.canonical(each['value']).decode()}"
        if each["test"] in signs
        else each["argument"]
        for each in rule["conditions"]
    ]
    digest = [f"digest {rule['digest'][:12]}"] if rule["digest"] else []
    return [*conditions, *digest, *([f"session {rule['session_key']}"] if rule["session_key"] else [])]


def _terms(rule: Plain) -> list[str]:
    """What a rule that asks wants; the others want nothing of anybody."""
    if rule["effect"] != Effect.ASK:
        return []
    terms = [f"{rule['quorum']} approvers"] if rule["quorum"] > 1 else []
    terms += [f"by {', '.join(rule['approvers'])}"] if rule["approvers"] else []
    terms += ["with a reason"] if rule["needs_reason"] else []
    if (seconds := rule["escalate_after_seconds"]) is not None:
        others = ", ".join(rule["escalate_to"]) if rule["approvers"] else ""
        terms.append(f"after {seconds} s also {others}" if others else f"told again after {seconds} s")
    return terms


def _text(text: str) -> str:
    if not text.strip():
        raise click.BadParameter("it is blank")
    return text.strip()


def _name(text: str) -> str:
    if not _NAME.fullmatch(text):
        why = f"{text!r} is no name of an approver: use token:ann, telegram:42 or {TERMINAL}"
        raise click.BadParameter(why)
    return text


def _digest(text: str) -> str:
    found = text.strip().lower()
    if not DIGEST.fullmatch(found):
        raise click.BadParameter("a digest has 64 signs of 0-9 and a-f")
    return found


def _condition(text: str) -> Plain:
    found = _CONDITION.fullmatch(text)
    argument = found["argument"].strip() if found else ""
    if not found or not all(part.strip() for part in argument.split(".")):
        why = f"use {', '.join(FORMS[:-1])} or {FORMS[-1]}"
        raise click.BadParameter(f"{text!r}: {why}")
    if found["test"] is None:
        return {"argument": argument, "test": str(Comparison.PRESENT)}
    sign = SIGNS[found["test"]]
    value = found["value"] if sign.takes is str else _value(found["value"])
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if sign.takes is float and not number:
        raise click.BadParameter(f"{text!r}: only a number is {sign.test} another one")
    return {"argument": argument, "test": str(sign.test), "value": value}


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


@rules_command.command(
    "add",
    epilog=output.examples(
        "frontdesk confirm rules add deny --action 'delete_*' --where 'path~/etc/*'",
        "frontdesk confirm rules add ask --action transfer_funds --where 'amount>1000' --quorum 2",
        "frontdesk confirm rules add allow --action send_report --where to=team@example.org --expires-in 8h",
    ),
)
@click.argument("effect", type=click.Choice([str(each) for each in Effect]))
@click.option(
    "--action", metavar="TEXT", type=_text, help="The action's name; * and ? stand for any characters."
)
@click.option("--digest", metavar="HEX", type=_digest, help="Exactly the action with this digest.")
@click.option(
    "--where",
    "conditions",
    multiple=True,
    type=_condition,
    metavar=f"ARGUMENT[{''.join(SIGNS)}VALUE]",
    help="An argument that is there, equals a value, is like a pattern, is below or above a number.",
)
@click.option("--session", "session_key", metavar="KEY", type=_text, help="Only in this conversation.")
@click.option("--quorum", type=click.IntRange(1, MAX_QUORUM), help="How many people must approve.")
@click.option(
    "--approver",
    "approvers",
    multiple=True,
    type=_name,
    metavar="NAME",
    help="Who may decide, as the audit log names them: token:ann, telegram:42, local.",
)
@click.option("--needs-reason", is_flag=True, default=None, help="Whoever decides says why.")
@click.option(
    "--escalate-after",
    "escalate_after_seconds",
    type=click.IntRange(0, MAX_TIMEOUT_SECONDS - 1),
    metavar="SECONDS",
    help="When people are told again, and others may decide, too.",
)
@click.option("--escalate-to", multiple=True, type=_name, metavar="NAME", help="Who these others are.")
@click.option(
    "--expires-in",
    "expires_at",
    type=_end,
    metavar="SPAN",
    help="30m, 12h, 7d: how long it holds. What allows needs it.",
)
@reaching.answering
def add_rule(service: ServiceDesk, /, **said: Any) -> Report:
    """Add a rule that denies, asks or allows.

    It counts where all of --action, --digest, --where and --session fit. One that asks can want more of
    people: --quorum and the options after it. One that allows names an action or a digest, and has an end;
    the ten most dangerous actions are asked all the same.
    """
    rule = service.say("POST", "/rules", _wanted(said))
    end = output.local_time(rule["expires_at"]) if rule["expires_at"] else "it is revoked"
    doubts = [*_doubts(rule), *([] if service.url else _doubts_about_people(rule, service.loaded))]
    text = f"Rule {rule['id']} holds until {end}."
    return Report(rule, text, doubts=[f"Note: {doubt}" for doubt in doubts])


def _wanted(said: Plain) -> Plain:
    """What is said about a rule, without what is not; click.UsageError for what makes no sense together."""
    rule = {name: value for name, value in said.items() if value not in (None, ())}
    for people in rule.keys() & {"approvers", "escalate_to"}:
        rule[people] = list(dict.fromkeys(rule[people]))
    if rule["effect"] != Effect.ASK and (terms := rule.keys() & set(TERMS)):
        raise click.UsageError(f"{_options(terms)}: only a rule that asks has terms.")
    if rule["effect"] == Effect.ALLOW and not rule.keys() & {"action", "digest"}:
        raise click.UsageError("A rule that allows needs --action or --digest.")
    if rule["effect"] == Effect.ALLOW and "expires_at" not in rule:
        raise click.UsageError("A rule that allows needs an end: --expires-in 8h, say.")
    if "escalate_to" in rule and not rule.keys() >= {"approvers", "escalate_after_seconds"}:
        raise click.UsageError("--escalate-to goes with --approver and --escalate-after.")
    named = {*rule.get("approvers", ()), *rule.get("escalate_to", ())}
    if rule.get("approvers") and len(named) < rule.get("quorum", 1):
        raise click.UsageError(
            f"--quorum {rule['quorum']} needs as many who may decide; {len(named)} named with --approver."
        )
    return rule


def _options(names: set[str]) -> str:
    options = {"approvers": "approver", "escalate_after_seconds": "escalate-after"}
    return ", ".join(f"--{options.get(name, name).replace('_', '-')}" for name in TERMS if name in names)


def _doubts(rule: Plain) -> Iterator[str]:
    """What somebody may not have meant."""
    if rule["digest"] or rule["conditions"] or rule["session_key"] or (rule["action"] or "").strip("*"):
        return
    if rule["effect"] == Effect.DENY:
        yield f"it denies everything. Take it back with: frontdesk confirm rules revoke {rule['id']}"
    else:
        yield "it fits everything: as long as it holds, no rule that allows has any effect."


def _doubts_about_people(rule: Plain, loaded: Config) -> Iterator[str]:
    """Whether those can decide whom the rule needs, as far as the settings tell. Our own service has the same
    ones."""
    tokens = {f"{TOKEN}{name}" for name in (OWNER, *loaded.confirm.people.approvers)}
    named = {*rule["approvers"], *rule["escalate_to"]}
    for name in sorted(named):
        if name.startswith(TOKEN) and name not in tokens:
            yield f"{name} cannot decide: the settings here have no such token."
    persons = {_person(name, loaded) for name in named or tokens}
    count = "1 person" if len(persons) == 1 else f"{len(persons)} people"
    if len(persons) < rule["quorum"] and named:
        yield f"nobody can fulfil it: those named are {count}, and it needs {rule['quorum']}."
    elif len(persons) < rule["quorum"]:
        yield f"there are tokens for {count} here. The others need the role approver in a chat."


def _person(name: str, loaded: Config) -> frozenset[str]:
    """All names of whoever goes by this one."""
    known = (each for each in loaded.confirm.persons if Person.of(each).may_be(name))
    return next(known, frozenset({bare_name(name)}))


@rules_command.command("revoke", epilog=output.examples("frontdesk confirm rules revoke r_1dbc56296a0a3c8e"))
@click.argument("rule_id", metavar="ID")
@reaching.answering
def revoke_rule(service: ServiceDesk, rule_id: str) -> Report:
    """Revoke a rule; what it allowed or denied before stays so."""
    if not rule_id:
        raise errors.InvalidInput(what="The id of the rule", why="it is empty")
    service.say("DELETE", f"/rules/{quote(rule_id, safe='')}")
    return Report({"id": rule_id, "revoked": True}, f"Rule {rule_id} is revoked.")
