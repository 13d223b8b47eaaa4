"""Puts the parts together: opens in order, closes in reverse."""

from frontdesk.app.sessions import SessionStore

__all__ = ["SessionStore"]
