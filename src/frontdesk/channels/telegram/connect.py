"""How a person connects a Telegram bot."""

from frontdesk.contracts.setups import Setup, SetupQuestion

STEPS = """\
1. In Telegram, open a chat with @BotFather (the one with the blue check mark).
2. Send /newbot, and answer its two questions: a name, and a user name that ends in "bot".
3. It answers with the token of your bot. Whoever has it can read and write as the bot.
For groups: /setprivacy, your bot, Disable lets it see messages that are not addressed to it.
(As of November 2026.)"""
SETUP = Setup(
    title="Telegram",
    steps=STEPS,
    questions=(
        SetupQuestion(
            name="token",
            prompt="The bot's token",
            where="What @BotFather gave: a number, a colon, and 35 letters. What you type is not shown.",
            secret=True,
        ),
        SetupQuestion(
            name="api_url",
            prompt="Another Bot API server than Telegram's",
            default="https://api.telegram.org",
        ),
    ),
    people="People are let in by their number, not by their name. To learn yours, say yes above, and write.",
    person_form=r"\d{1,20}",
    home="A chat's number: that of your direct chat with the bot, once you have written there, is your own.",
)
