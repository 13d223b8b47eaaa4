"""A stand-in of Slack, for tests: its methods, its socket and its calls, on loopback and as strict.

    async with Workspace.open() as team:
        tokens = {"bot_token": lambda: team.bot_token, "app_token": lambda: team.app_token}
        channel = Channel(Options(api_url=team.url, **tokens))
        ...
        await team.say("U1", "Hello", team.direct("U1"))
        assert [post.shown for post in team.posts] == ["Hello to you"]

It checks tokens, required fields, lengths, blocks and edits; it knows which envelopes were acknowledged; what
nobody listens to is gone but for its history; and it can refuse, say wait, fail, hang or cut a connection
before or after it has taken a message (`TeamFault`).
"""

from frontdesk.testing.slack.inventory import Envelope as Envelope
from frontdesk.testing.slack.inventory import TeamCall as TeamCall
from frontdesk.testing.slack.inventory import TeamChat as TeamChat
from frontdesk.testing.slack.inventory import TeamFault as TeamFault
from frontdesk.testing.slack.inventory import TeamFile as TeamFile
from frontdesk.testing.slack.inventory import TeamPost as TeamPost
from frontdesk.testing.slack.workspace import Workspace as Workspace
