"""How a person connects a Discord bot."""

from frontdesk.contracts.setups import Setup, SetupQuestion

STEPS = """\
1. Open https://discord.com/developers/applications, and make a New Application.
2. Under Bot, turn on Message Content Intent (Privileged Gateway Intents), and save.
3. There, Reset Token shows the bot's token, once. Whoever has it can read and write as the bot.
4. Under OAuth2, URL Generator, choose bot and applications.commands, and below View Channels, Send Messages,
   Send Messages in Threads, Attach Files, Read Message History and Add Reactions. The link adds the bot to
   your server.
(As of November 2026.)"""
SETUP = Setup(
    title="Discord",
    steps=STEPS,
    questions=(
        SetupQuestion(
            name="token",
            prompt="The bot's token",
            where="What Reset Token showed: three parts, with dots between them. What you type is not shown.",
            secret=True,
        ),
        SetupQuestion(
            name="api_url",
            prompt="Another address for calls than Discord's",
            default="https://discord.com/api/v10",
        ),
        SetupQuestion(
            name="gateway_url",
            prompt="Another address for messages than Discord's",
            default="wss://gateway.discord.gg/",
        ),
    ),
    people=(
        "People are let in by their number, not by their name. In Discord, turn on Developer Mode (User"
        " Settings, Advanced); then Copy User ID is in the menu of a person."
    ),
    person_form=r"\d{1,20}",
    home="A channel's number: in Developer Mode, Copy Channel ID is in the menu of a channel.",
)
