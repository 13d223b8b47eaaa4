"""How a person connects a mailbox."""

from frontdesk.contracts.setups import Setup, SetupQuestion

STEPS = """\
1. Make a mailbox for the agent that nothing else reads. Any provider with IMAP and SMTP will do.
2. Find the names of its servers in the provider's help. Where you sign in with two steps, make an app
   password: the usual one does not work here.
3. Send a mail to it from another provider, and look at its source: the name before the first semicolon of
   the topmost Authentication-Results is how your server calls itself (authserv_id). Without it,
   anybody can write in anybody's name."""
SETUP = Setup(
    title="E-mail",
    steps=STEPS,
    questions=(
        SetupQuestion(name="address", prompt="The mailbox's address", where="As desk@example.com."),
        SetupQuestion(
            name="password",
            prompt="Its password",
            where="The app password, if there is one. What you type is not shown.",
            secret=True,
        ),
        SetupQuestion(name="imap_host", prompt="Where mail is read (IMAP)", where="As imap.example.com."),
        SetupQuestion(name="smtp_host", prompt="Where mail is sent (SMTP)", where="As smtp.example.com."),
        SetupQuestion(
            name="authserv_id",
            prompt="How your server calls itself",
            where="From step 3, as mx.example.com; nothing where you do not know it.",
            optional=True,
        ),
        SetupQuestion(name="imap_port", prompt="The port of IMAP", default="993", is_number=True),
        SetupQuestion(name="imap_security", prompt="tls, starttls or none", default="tls"),
        SetupQuestion(name="smtp_port", prompt="The port of SMTP", default="465", is_number=True),
        SetupQuestion(name="smtp_security", prompt="tls, starttls or none", default="tls"),
    ),
    people="People are let in by their address, as ann@example.org.",
    person_form=r"[^\s@]+@[^\s@]+",
    home="An address; mostly your own.",
)
