"""How a person connects a Matrix account."""

from frontdesk.contracts.setups import Setup, SetupQuestion

STEPS = """\
1. Make an account for the agent on your homeserver, as for a person.
2. Sign in to it with any client. In Element: Settings, Help & About, Advanced shows the access token.
   Close the window without signing out: that would end the token.
3. For encrypted rooms: Settings, Encryption, set up recovery, and keep the recovery key."""
SETUP = Setup(
    title="Matrix",
    steps=STEPS,
    questions=(
        SetupQuestion(
            name="homeserver",
            prompt="The homeserver's address",
            where="Where clients connect to, as https://matrix.example.org.",
        ),
        SetupQuestion(
            name="access_token",
            prompt="The access token",
            where="Of a device that nothing else uses. What you type is not shown.",
            secret=True,
        ),
    ),
    people="People are let in by their whole id, @name:example.org, as their client shows it.",
)
