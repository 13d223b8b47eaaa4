"""Requests, votes, grants and rules: what is kept of confirmations."""

from frontdesk.stores.confirmations.store import Confirmations

__all__ = ["Confirmations"]
