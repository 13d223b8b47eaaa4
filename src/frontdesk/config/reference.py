"""The reference page of the settings, as Markdown."""

from frontdesk.config import settings
from frontdesk.config.reading import FILE_VARIABLE
from frontdesk.config.settings import Setting
from frontdesk.config.table import SETTINGS

HEAD = f"""\
# Settings

<!-- Made by `frontdesk config reference`; change the table in the source, not this page. -->

frontdesk reads `frontdesk.toml` in its home folder (`~/.frontdesk`, or where `FRONTDESK_HOME` points), or the
file that `frontdesk --config FILE` or the variable `{FILE_VARIABLE}` names. A file that is named must exist;
otherwise a missing one means that every setting has its default.

```toml
group_sessions_per_user = false

[session_reset]
at_hour = 5
timezone = "Europe/Berlin"

[session_reset.by_type.group]
mode = "none"
max_messages = 500

[platforms.telegram]
enabled = true
home_channel = {{ chat_id = "12345", name = "Operations" }}
```

Each setting has an environment variable, too, except those of a single chat or profile. It wins over the
file. There `true` and `false` may be `yes` and `no`, `on` and `off` or `1` and `0`; a list is written with
commas (`webhook,api_server`), an empty one as `[]`; an empty variable sets nothing.

A setting that does not exist is an error, and so is a value that is not allowed: `frontdesk config check`
says so, and also which variables begin with `{settings.VARIABLE_PREFIX}` and set nothing.
`frontdesk config show` prints every effective value and where it came from; the page `/settings` of a gateway
that runs shows what it was started with.
"""

OVERRIDE = (
    "A policy of its own. It is complete in itself: what it leaves out has the default shown under"
    " `[session_reset]`, not the value that is set there."
)
SECTIONS = {
    "": "Above the first table of the file.",
    "store": "Where conversations are kept.",
    "server": "Where the gateway is reached over HTTP.",
    "agent": (
        "The agent behind the gateway. Every driver has options of its own: see [agents](agents.md),"
        " [models](agents-models.md), [pydantic-ai](agents-pydantic.md) and [ACP](agents-acp.md)."
    ),
    "gateway": "How turns are run and answers delivered.",
    "confirm": (
        "Human confirmation of dangerous actions: see [confirmations](confirmations.md). Approvers and agents"
        " have a token each, which is named and not written here: `[confirm.approvers_env]` and"
        ' `[confirm.agents_env]` hold lines such as `ann = "ANN_TOKEN"`, with the variable that has it, and'
        " `[confirm.approvers_file]` and `[confirm.agents_file]` such with a file. `[confirm.accounts]` says"
        ' who approvers are in the chats, so that nobody counts twice: `ann = ["matrix:@ann:example.org"]`.'
        " What programs are told of decisions is signed with the secret that `callback_secret_env` or"
        " `callback_secret_file` names."
    ),
    "turns": "How messages become turns.",
    "checkpoints": "Snapshots of the agent's working directory: see [checkpoints](checkpoints.md).",
    "hooks": (
        "Programs that are told about the life of sessions, on their standard input: see [hooks](hooks.md)."
        " In a variable a command is written as in a shell: `save-memories --to '/srv/my memories'`."
    ),
    "session_reset": (
        "When conversations start afresh. The most specific policy holds: the chat's, else the platform's,"
        " else the chat type's, else this one."
    ),
    "session_reset.by_type.<type>": (
        f"For chats of one type: `dm`, `group`, `channel` or `thread`. {OVERRIDE}"
    ),
    "session_reset.by_platform.<platform>": f"For one platform, such as `telegram`. {OVERRIDE}",
    "session_reset.by_chat.<chat>": (
        f'For one chat, written `"platform:chat_id"`, such as `"telegram:-100123"`. {OVERRIDE} These settings'
        " have no environment variables."
    ),
    "chats.<chat>": "For one chat or topic: see [context](context.md#instructions-of-a-chat).",
    "platforms.<platform>": "One table for each platform, such as `[platforms.telegram]`.",
    "channels.<platform>": (
        "Who may use a platform; nobody, unless something here or an administrator lets them in. See"
        " [people](people.md). What is answered in groups. The options of a channel stand in the same table,"
        " those of one of several endpoints or accounts in a table of its own, such as"
        " `[channels.webhook.shop]`: see [webhook](webhook.md) and [api](api.md)."
    ),
    "routes": "A row for each place, as many as there are.",
    "profiles.<profile>": (
        "Another agent with its own accounts, prompt and working directory, under a name of your own: see"
        " [profiles](profiles.md). These settings have no environment variables."
    ),
    "profiles.<profile>.agent": "The agent of the profile.",
    "profiles.<profile>.session_reset": f"When conversations of the profile start afresh. {OVERRIDE}",
    "profiles.<profile>.channels.<platform>": (
        "The profile's own account on a platform, which is called like the profile: its options as in"
        " `[channels.<platform>]`, and who may use it."
    ),
}
"""The tables of the file, with what is said about each."""
SHORT = ("profiles.<profile>.channels.<platform>",)
"""Tables whose settings are explained elsewhere, as those of policies are."""


def render() -> str:
    """The whole page."""
    return "\n".join([HEAD, *(_section(name, text) for name, text in SECTIONS.items())])


def _section(name: str, text: str) -> str:
    rows = [setting for setting in SETTINGS if _table_of(setting) == name]
    body = _names(rows) if OVERRIDE in text or name in SHORT else "\n".join(map(_entry, rows))
    table = name.replace("<chat>", '"<platform>:<chat_id>"')
    title = f"`[{table}]`" if table else "General"
    title = f"`[[{table}]]`" if rows[0].is_table else title
    return f"## {title}\n\n{text}\n\n{body}"


def _table_of(setting: Setting) -> str:
    """The table that the setting stands in: the longest that its name begins with."""
    return max((name for name in SECTIONS if not name or f"{setting.name}.".startswith(f"{name}.")), key=len)


def _entry(setting: Setting) -> str:
    default = "not set" if setting.default is None else f"`{settings.as_toml(setting.default)}`"
    facts = [f"- Allowed: {setting.kind.allowed}", f"- Default: {default}"]
    if setting.variable:
        facts.append(f"- Variable: `{setting.variable}`{f', or `{setting.alias}`' if setting.alias else ''}")
    if setting.secret:
        facts.append("- A password in it is never shown.")
    return f"### `{setting.name}`\n\n{setting.help}\n\n" + "\n".join(facts) + "\n"


def _names(rows: list[Setting]) -> str:
    """The settings of a table, in short: what they mean is said elsewhere."""
    if not rows[0].variable:
        return "- " + ", ".join(f"`{row.parts[-1]}`" for row in rows) + "\n"
    lines = [f"| `{row.parts[-1]}` | `{row.variable}` |" for row in rows]
    return "\n".join(["| setting | variable |", "|---|---|", *lines, ""])
