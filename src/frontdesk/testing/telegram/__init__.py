"""A stand-in of Telegram's Bot API, for tests: real HTTP on loopback, and as strict as the platform.

    async with BotApi.open() as api:
        channel = Channel(Options(token=lambda: api.token, api_url=api.url))
        api.say(Member(id=7), "Hello")
        ...
        assert [post.text for post in api.posts] == ["Hello to you"]

It checks tokens, required fields, lengths in UTF-16 units, markup, buttons and edits; it knows which updates
it was told to have been taken; and it can refuse, say wait, fail, hang or cut a connection before or after it
has taken a message (`ApiFault`).
"""

from frontdesk.testing.telegram.chats import ApiCall as ApiCall
from frontdesk.testing.telegram.chats import ApiFault as ApiFault
from frontdesk.testing.telegram.chats import Chat as Chat
from frontdesk.testing.telegram.chats import Member as Member
from frontdesk.testing.telegram.chats import Post as Post
from frontdesk.testing.telegram.server import BotApi as BotApi
from frontdesk.testing.wire import Upload as Upload
