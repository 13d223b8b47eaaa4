"""How a person connects an app of Slack's."""

from frontdesk.contracts.setups import Setup, SetupQuestion

MANIFEST = """\
display_information:
  name: Frontdesk
features:
  app_home:
    messages_tab_enabled: true
    messages_tab_read_only_enabled: false
  bot_user:
    display_name: frontdesk
    always_online: true
  slash_commands:
    - command: /frontdesk
      description: Commands of the agent
      usage_hint: help
      should_escape: true
oauth_config:
  scopes:
    bot:
      - app_mentions:read
      - assistant:write
      - channels:history
      - channels:read
      - chat:write
      - commands
      - files:read
      - files:write
      - groups:history
      - groups:read
      - im:history
      - im:read
      - mpim:history
      - mpim:read
      - reactions:read
      - reactions:write
      - users:read
settings:
  event_subscriptions:
    bot_events:
      - app_mention
      - message.channels
      - message.groups
      - message.im
      - message.mpim
      - reaction_added
      - reaction_removed
  interactivity:
    is_enabled: true
  socket_mode_enabled: true
  token_rotation_enabled: false"""
STEPS = f"""\
1. Open https://api.slack.com/apps, Create New App, From a manifest; choose your workspace, and paste this:
{MANIFEST}
2. Install App, Install to Workspace. It shows the Bot User OAuth Token (xoxb-…).
3. Basic Information, App-Level Tokens, Generate: with the scope connections:write. It shows xapp-….
4. In Slack, invite the app to the channels where it is to answer: /invite @frontdesk
(As of November 2026.)"""
SETUP = Setup(
    title="Slack",
    steps=STEPS,
    questions=(
        SetupQuestion(
            name="bot_token",
            prompt="The Bot User OAuth Token",
            where="Install App shows it: xoxb-…. What you type is not shown.",
            secret=True,
        ),
        SetupQuestion(
            name="app_token",
            prompt="The app-level token",
            where="Basic Information, App-Level Tokens: xapp-…, with connections:write. It is not shown.",
            secret=True,
        ),
        SetupQuestion(
            name="api_url",
            prompt="Another address than Slack's",
            default="https://slack.com/api/",
        ),
    ),
    people="People are let in by their member id, U…: Profile, the three dots, Copy member ID.",
    person_form=r"[UW][A-Z0-9]+",
    home="A channel's id, C…: it stands below the channel's details. Invite the app there first.",
)
