"""A tool of an agent that runs only when somebody has approved exactly this call of it.

Start the service with `frontdesk confirm serve`, then this; decide with `frontdesk confirm list`.
"""

from frontdesk.confirm import SyncClient, confirmed
from frontdesk.errors import NotConfirmed

desk = SyncClient("http://127.0.0.1:6000")


@confirmed("deploy_production", client=desk, timeout_seconds=120)
def deploy(service: str, version: str, *, canary: bool = True) -> str:
    """Bring a new version of a service to the customers."""
    return f"{service} {version} is deployed{', to a few first' if canary else ''}"


if __name__ == "__main__":
    try:
        print(deploy("shop", "1.4.2"))
    except NotConfirmed as refusal:
        print(f"Not deployed: {refusal}")
