"""For authors of agents: ask people before something dangerous is done, and do exactly what they approved.

from frontdesk.confirm import confirmed

@confirmed(action="delete_data")
def drop_table(name: str) -> None: ...
"""

from frontdesk.confirm.client import Client, SyncClient
from frontdesk.confirm.decorator import confirmed
from frontdesk.confirm.records import Decision, Redeemed, Ticket

__all__ = ["Client", "Decision", "Redeemed", "SyncClient", "Ticket", "confirmed"]
