"""A strict stand-in of Discord, on loopback: its REST API and its gateway, for tests of what speaks to them.

::

    async with DiscordApi.open() as api:
        options = Options(token=lambda: api.token, api_url=api.url, gateway_url=api.gateway_url)
"""

from frontdesk.testing.discord.rest import DiscordFault as DiscordFault
from frontdesk.testing.discord.rest import visible as visible
from frontdesk.testing.discord.standin import DiscordApi as DiscordApi

__all__ = ["DiscordApi", "DiscordFault", "visible"]
