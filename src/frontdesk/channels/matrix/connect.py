"""How a person connects a Matrix account."""

from frontdesk.contracts.setups import Setup, SetupQuestion

STEPS = """\
1. Make an account for the agent on your homeserver, as for a person.
2. Sign in to it with any client. In Element: Settings, Help & About, Advanced shows the access token.
   Close the window without signing out: that would end the token.
3. For encrypted rooms: Settings, Encryption, set up recovery, and keep the recovery key.
(As of November 2026.)"""
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
        SetupQuestion(
            name="recovery_key",
            prompt="The recovery key",
            where="From step 3, for encrypted rooms; nothing where there is none. It is not shown.",
            secret=True,
            optional=True,
        ),
    ),
    people="People are let in by their whole id, @name:example.org, as their client shows it.",
    person_form=r"@[^\s:]*:\S+",
    home="A room's id, !…, where the account is a member: in Element, Room settings, Advanced.",
)
