"""``frontdesk connect``: a platform is set up, step by step, and tried before anything is written."""

import asyncio
import re
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import click
from msgspec.structs import replace

from frontdesk import config, errors
from frontdesk.app import connecting
from frontdesk.app.connecting import AccountPlan, Connecting, SecretPlace
from frontdesk.cli import asking, one_line, output
from frontdesk.cli.output import Report
from frontdesk.config.options import TypedSecret
from frontdesk.contracts.channels import Channel
from frontdesk.contracts.setups import Newcomer, Setup, SetupQuestion, Welcoming
from frontdesk.formats import quoting
from frontdesk.model import findings
from frontdesk.model.deliveries import NotSent, Sent
from frontdesk.model.findings import Finding, Severity
from frontdesk.model.platforms import NAME, Platform

MEETING_SECONDS = 180.0
TRIES = 3
"""How often a credential that the platform refuses is asked for."""
THERE = "{account} is connected already. --replace replaces its credentials."
NOBODY = (
    'Nobody may talk to it yet. Let people in with `allow` in the file, or with codes: strangers = "pair".'
)
NEXT = "Next: frontdesk run. A gateway that runs has to be started again. Later: frontdesk doctor."
WILL_WRITE = "Who may talk to it? Will you write to it now, from your own account?"
WRITE_NOW = (
    "Write to it in private, anything; this waits for three minutes. Ctrl-C ends it: nothing is written."
)
HOME = "Shall that chat be its home channel, for what nobody asked for?"
HOME_ID = "The id of its home channel, for what nobody asked for; nothing for none"
NOT_ONLY_PEOPLE = ("role:", "chat:")
"""What a list of people may name besides."""
CLOSED = (
    "Nothing can be written in {folder}. Give yourself write access to it, or name another file: --config."
)
NOTHING = "Nothing was written."
UNKNOWN = "There is no platform '{name}' to connect. There are: {known}."
LATER = "The hello goes out when the gateway starts."
MAYBE = "The hello may have arrived: the platform did not say."


class PlatformGroup(click.Group):
    """A command for each platform that says how it is connected."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return list(connecting.setups())

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        setup = connecting.find_setup(cmd_name) if NAME.fullmatch(cmd_name) else None
        return _command_for(cmd_name, setup) if setup else None

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        if args[0] not in (known := self.list_commands(ctx)) and not args[0].startswith("-"):
            raise click.UsageError(UNKNOWN.format(name=args[0], known=", ".join(known)), ctx)
        return super().resolve_command(ctx, args)


@click.group(cls=PlatformGroup)
def command() -> None:
    """Connect a platform: what is needed is explained, asked for, tried, and written into the file.

    Nothing is written before everything was asked and the platform has agreed.
    """


def _command_for(platform: str, setup: Setup) -> click.Command:
    @output.answering
    def connect(config_file: Path | None, **given: Any) -> Report:
        loaded, account = config.load(config_file), given["account"]
        if account is not None and not NAME.fullmatch(account):
            raise click.BadParameter("use a-z, 0-9, '_' and '-'", param_hint="--account")
        plan = AccountPlan(
            platform=Platform(platform),
            account=account,
            allow=given["allow"],
            administrators=given["administrators"],
            home=given["home"],
        )
        connecting.check_installed(platform)
        if folder := connecting.find_closed(loaded):
            raise click.ClickException(CLOSED.format(folder=folder))
        with asyncio.Runner() as runner:
            return ConnectWalk(setup, given, runner).go(loaded, plan)

    flags = [flag for question in setup.questions for flag in _flags(question)]
    for flag in (*COMMON, *flags):
        connect = flag(connect)
    connect.__doc__ = f"Connect {setup.title}.\n\n\b\n{setup.steps}"
    return click.command(platform, short_help=f"Connect {setup.title}.")(connect)


def _flags(question: SetupQuestion) -> list[Callable[..., Any]]:
    name, title = question.name.replace("_", "-"), question.prompt
    if not question.secret:
        return [click.option(f"--{name}", question.name, help=f"{title}.", default=None)]
    kept = f"that has the secret: {title}."
    return [
        click.option(f"--{name}-file", f"{question.name}_file", help=f"The file {kept}", metavar="FILE"),
        click.option(f"--{name}-env", f"{question.name}_env", help=f"The variable {kept}", metavar="NAME"),
    ]


COMMON = (
    click.option(
        "--hello/--no-hello", default=True, show_default=True, help="Say hello in the home channel."
    ),
    click.option("--replace", is_flag=True, help="Replace the credentials of an account that is there."),
    click.option("--home", metavar="CHAT", help="The chat for what nobody asked for: its home channel."),
    click.option(
        "--administrator", "administrators", multiple=True, metavar="ID", help="Who may let others in."
    ),
    click.option("--allow", multiple=True, metavar="ID", help="Who may talk. May be given several times."),
    click.option("--account", metavar="NAME", help="A name for it, where there are several accounts."),
)


class ConnectWalk:
    """A person, or a script, on the way through the questions. One loop for all of it: what a channel has
    opened belongs to a loop; questions are asked outside of it, where Ctrl-C ends the command at once."""

    def __init__(self, setup: Setup, given: Mapping[str, Any], runner: asyncio.Runner) -> None:
        self._setup = setup
        self._given = given
        self._runner = runner
        self._asks = output.is_terminal()
        self._said: dict[str, str] = {}
        """What was answered before, to be offered at the next try."""

    def go(self, loaded: config.Config, plan: AccountPlan) -> Report:
        if self._asks:
            output.tell(f"{self._setup.title}\n\n{self._setup.steps}\n")
        if not self._may_replace(loaded, plan):
            return Report({"connected": False, "findings": []}, NOTHING, good=False)
        found: list[Finding] = []
        for tries in range(TRIES, 0, -1):
            with ExitStack() as opened:
                made, found = self._tried(loaded, plan, opened)
                _tell(found)
                if made and connecting.is_usable(found):
                    return self._finish(made, found)
            if not self._asks or tries == 1 or not output.ask_yes("Try again?"):
                break
        return Report({"connected": False, "findings": found}, NOTHING, good=False)

    def _tried(
        self, loaded: config.Config, plan: AccountPlan, opened: ExitStack
    ) -> tuple[Connecting | None, list[Finding]]:
        """A connection with what was answered, if it makes a channel, and what the platform says."""
        try:
            made = opened.enter_context(connecting.begun(loaded, self._filled(plan)))
        except errors.InvalidSetting as error:
            if not self._asks:
                raise
            return None, [findings.failed(one_line(error))]
        opened.callback(lambda: self._runner.run(made.channel.close()))
        return made, self._runner.run(made.examine())

    def _filled(self, plan: AccountPlan) -> AccountPlan:
        """The plan with what the flags say, and what a person says to the rest."""
        plain: dict[str, Any] = {}
        secrets: dict[str, TypedSecret | SecretPlace] = {}
        for question in self._setup.questions:
            if question.secret:
                secret = self._secret(question)
                if secret != TypedSecret(""):
                    secrets[question.name] = secret
            else:
                answer = self._given[question.name] or question.default or self._ask(question)
                if answer and answer != question.default:
                    plain[question.name] = _number(question, answer) if question.is_number else answer
        return replace(plan, plain=plain, secrets=secrets)

    def _secret(self, question: SetupQuestion) -> TypedSecret | SecretPlace:
        if variable := self._given[f"{question.name}_env"]:
            return SecretPlace(option=f"{question.name}_env", name=variable)
        if file := self._given[f"{question.name}_file"]:
            return SecretPlace(option=f"{question.name}_file", name=str(Path(file).absolute()))
        return TypedSecret(self._ask(question))

    def _ask(self, question: SetupQuestion) -> str:
        flag = f"--{question.name.replace('_', '-')}"
        flags = f"{flag}-env or {flag}-file" if question.secret else flag
        if not self._asks:
            if question.optional:
                return ""
            raise click.UsageError(f"Nobody can be asked here: give {flags}.")
        if question.where:
            output.tell(question.where)
        if question.secret:
            answer = output.ask_secret(question.prompt).strip()
        else:
            answer = output.ask_text(question.prompt, self._said.get(question.name, "")).strip()
            self._said[question.name] = answer
        if not answer and not question.optional:
            raise click.UsageError(f"{question.prompt}: nothing was given. Nothing was written.")
        return answer

    def _may_replace(self, loaded: config.Config, plan: AccountPlan) -> bool:
        """Asked first: who says no need not look for a credential."""
        if self._given["replace"] or not connecting.is_there(loaded, plan):
            return True
        name = _name(plan)
        if not self._asks:
            raise click.ClickException(THERE.format(account=name))
        return output.ask_yes(f"{name} is connected already. Replace its credentials?")

    def _finish(self, made: Connecting, found: Sequence[Finding]) -> Report:
        if self._asks and not made.plan.people:
            self._let_in(made)
        file = made.commit()
        output.tell(f"Wrote {file}.")
        data: dict[str, Any] = {"connected": True, "file": str(file), "findings": found, "hello": None}
        data |= {"allow": made.plan.allow, "home": made.plan.home}
        doubts = [] if made.plan.people or made.lets_somebody_in else [NOBODY]
        if self._given["hello"] and made.plan.home:
            data["hello"], doubt = self._greet(made)
            doubts += [doubt] if doubt else []
        return Report(data, f"{_name(made.plan)} is connected.\n{NEXT}", doubts=doubts)

    def _greet(self, made: Connecting) -> tuple[bool, str | None]:
        """Say hello; a channel that can only send while a gateway runs does so then. Whether it arrived, and
        what the person should know."""
        outcome = self._runner.run(made.greet())
        if not isinstance(outcome, NotSent):
            return isinstance(outcome, Sent), None if isinstance(outcome, Sent) else MAYBE
        failed = f"The hello was not sent: {outcome.why}"
        if outcome.hopeless:
            return False, failed
        try:
            loaded, to = config.load(made.file), _name(made.plan)
            asking.ask(loaded, lambda office: office.send(to, connecting.HELLO), creates=True)
        except errors.FrontdeskError:
            return False, failed
        return False, LATER

    def _let_in(self, made: Connecting) -> None:
        """Ask who may talk: whoever writes now, or whose ids are typed."""
        person = self._meet(made.channel)
        if person is None:
            made.change(allow=self._ask_people())
            if made.plan.home is None and self._setup.home:
                self._ask_home(made)
            return
        made.change(allow=(person.user_id,))
        if output.ask_yes("May they also let others in, and see every conversation?"):
            made.change(administrators=(person.user_id,))
        if made.plan.home is None and output.ask_yes(HOME):
            made.change(home=person.chat_id)

    def _ask_people(self) -> tuple[str, ...]:
        """Ids of the form that the platform's have: a name in their place would let nobody in."""
        output.tell(self._setup.people)
        while True:
            typed = output.ask_text("Ids of those who may talk, with commas between them")
            people = tuple(each.strip() for each in typed.split(",") if each.strip())
            if not (wrong := [each for each in people if not self._is_id(each)]):
                return people
            output.tell(f"{quoting.quote(wrong[0])} is no such id. {self._setup.people}")

    def _is_id(self, text: str) -> bool:
        form = self._setup.person_form
        return not form or bool(re.fullmatch(form, text)) or text == "*" or text.startswith(NOT_ONLY_PEOPLE)

    def _ask_home(self, made: Connecting) -> None:
        """A chat that the platform knows, or none."""
        output.tell(self._setup.home)
        for _ in range(TRIES):
            made.change(home=output.ask_text(HOME_ID).strip() or None)
            if made.plan.home is None:
                return
            found = self._runner.run(made.examine())
            if connecting.is_usable(found):
                return
            _tell([each for each in found if each.verdict is Severity.FAILED])
        made.change(home=None)

    def _meet(self, channel: Channel) -> Newcomer | None:
        """Somebody who writes now, and whom the person at the terminal knows."""
        if not isinstance(channel, Welcoming) or not output.ask_yes(WILL_WRITE):
            return None
        output.tell(WRITE_NOW)
        people = channel.meet()
        try:
            while person := self._runner.run(_next(people)):
                named = f"{quoting.quote(person.name)} wrote, with the id {quoting.quote(person.user_id)}"
                if output.ask_yes(f"{named}. May they talk to it?"):
                    return person
        except errors.FrontdeskError as error:
            output.note(one_line(error))
        finally:
            self._runner.run(people.aclose())
        return None


async def _next(people: AsyncGenerator[Newcomer, None]) -> Newcomer | None:
    try:
        async with asyncio.timeout(MEETING_SECONDS):
            return await anext(people, None)
    except TimeoutError:
        output.tell("Nobody wrote.")
        return None


def _number(question: SetupQuestion, answer: str) -> int:
    if not (answer.isascii() and answer.isdecimal()):
        raise click.UsageError(f"{question.prompt}: use a whole number. Nothing was written.")
    return int(answer)


def _name(plan: AccountPlan) -> str:
    return f"{plan.platform}@{plan.account}" if plan.account else str(plan.platform)


def _tell(found: Sequence[Finding]) -> None:
    for each in found:
        output.tell(f"{each.verdict:8} {' '.join(each.text.split())}")
