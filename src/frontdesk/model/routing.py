"""Profiles and the table of routes: which profile deals with a message, and what its place has of its own."""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec
from msgspec.structs import force_setattr, replace

from frontdesk import errors
from frontdesk.model import whatsapp
from frontdesk.model.platforms import Platform
from frontdesk.model.policies import SessionResetPolicy
from frontdesk.model.sources import ChatType, SessionSource, readable

DEFAULT = "default"
"""The profile that the settings outside of profiles are."""
PROFILE_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
PROFILE_NAMES = "a-z, 0-9, '_' and '-', at most 64 of them; default is what stands outside of profiles"
WHERE = ("account", "scope", "chat", "thread", "person")
WHAT = ("profile", "model", "prompt", "limits")

Closeness = tuple[int, int, int, int]
"""How closely a row names a place: its thread, its chat, the person, the server. More is closer."""


def named(profile: str | None) -> str | None:
    """The profile's name; None for the default one, however it is written."""
    return None if not profile or profile == DEFAULT else profile


class Profile(msgspec.Struct, frozen=True, kw_only=True):
    """A set-up of its own; what it leaves out is as for the default profile."""

    accounts: tuple[str, ...] = ()
    """Whose messages it deals with, as ``platform@account``, or ``platform`` where that has no name."""
    prompt: str | None = None
    """In the place of the extra prompt that others have."""
    working_dir: str | None = None
    reset_policy: SessionResetPolicy | None = None
    """In the place of those by type and platform; one of a single chat still wins."""

    def __post_init__(self) -> None:
        for name, value in (("prompt", self.prompt), ("working_dir", self.working_dir)):
            if not isinstance(value, str | None):
                raise errors.InvalidSetting(key=name, value=value, allowed="a text")
        if not isinstance(self.reset_policy, SessionResetPolicy | None):
            allowed = "a SessionResetPolicy"
            raise errors.InvalidSetting(key="reset_policy", value=self.reset_policy, allowed=allowed)


PLAIN = Profile()
"""One that leaves everything out."""


class RoutingRow(msgspec.Struct, frozen=True, kw_only=True):
    """What holds at some places of one account: of a server, a chat, a thread or a person of it, or of all.

    A person is meant in their direct chat, unless a chat is named, too: what they alone have is never shown
    to a group.
    """

    platform: str
    account: str | None = None
    scope: str | None = None
    chat: str | None = None
    thread: str | None = None
    person: str | None = None
    profile: str | None = None
    model: str | None = None
    prompt: str | None = None
    limits: Mapping[str, Any] = {}
    """Fields of the policy that are otherwise here."""

    def __post_init__(self) -> None:
        if Platform.parse(self.platform) is None:
            known = ", ".join(Platform.known())
            raise errors.InvalidSetting(key="platform", value=self.platform, allowed=known)
        for name in (*WHERE, "profile", "model", "prompt"):
            force_setattr(self, name, _text(name, getattr(self, name)))
        if self.thread and not self.chat:
            raise errors.InvalidSetting(key="thread", value=self.thread, allowed="a thread of a chat")
        if not any(getattr(self, name) for name in WHAT):
            raise errors.InvalidSetting(
                key="row", value=str(self), allowed=f"one that says {', '.join(WHAT)}"
            )
        _check_limits(self.limits)
        self._check_whatsapp()

    def _check_whatsapp(self) -> None:
        """Who has several names there is not known by one of them."""
        if self.platform != whatsapp.PLATFORM:
            return
        name = self.person or self.chat
        if name and (self.person or not whatsapp.is_group(name)):
            allowed = "an account or a group: people have several names here"
            raise errors.InvalidSetting(key="person" if self.person else "chat", value=name, allowed=allowed)

    @property
    def place(self) -> tuple[str | None, ...]:
        """What it is about; no two rows of a table are about the same."""
        return (self.platform, *(getattr(self, name) for name in WHERE))

    def __str__(self) -> str:
        parts = [f"{name} {getattr(self, name)}" for name in WHERE if getattr(self, name)]
        return ", ".join([self.platform, *parts])

    def closeness(self, source: SessionSource) -> Closeness | None:
        """How closely it names where a message came from; None when it is about something else."""
        if self.platform != source.platform or self.account != (source.account or None):
            return None
        if self.scope and self.scope != source.scope_id:
            return None
        if self.thread and self.thread != source.thread_id:
            return None
        chat = _place_in(self.chat, (source.parent_chat_id, source.chat_id_alt, source.chat_id))
        person = _place_in(self.person, (source.user_id_alt, source.user_id))
        if chat is None or person is None:
            return None
        if self.person and not self.chat and source.chat_type is not ChatType.DM:
            return None
        return bool(self.thread), chat, person, bool(self.scope)


def _place_in(wanted: str | None, ids: tuple[str | None, ...]) -> int | None:
    """0 when nothing is wanted, else where among the ids it is, from 1; the last one that is it."""
    if wanted is None:
        return 0
    return next((place for place in range(len(ids), 0, -1) if ids[place - 1] == wanted), None)


def _text(name: str, value: object) -> str | None:
    if value is None:
        return None
    number = isinstance(value, int) and not isinstance(value, bool) and name in WHERE
    text = str(value) if number or isinstance(value, str) else ""
    if not text.strip() or text != readable(text):
        raise errors.InvalidSetting(key=name, value=value, allowed="a text that is not empty")
    return text


def _check_limits(limits: object) -> None:
    if not isinstance(limits, Mapping):
        raise errors.InvalidSetting(key="limits", value=limits, allowed="a table")
    for name in limits:
        if name not in SessionResetPolicy.__struct_fields__:
            known = ", ".join(SessionResetPolicy.__struct_fields__)
            raise errors.InvalidSetting(key="limits", value=name, allowed=f"the names {known}")
    SessionResetPolicy(**limits)


class Directions(msgspec.Struct, frozen=True, kw_only=True):
    """What the routes say of the place of a message."""

    profile: str | None = None
    model: str | None = None
    prompt: str | None = None
    limits: Mapping[str, Any] = {}
    rows: Mapping[str, str] = {}
    """Which row says so, for each of them."""

    def limited(self, policy: SessionResetPolicy) -> SessionResetPolicy:
        return replace(policy, **self.limits) if self.limits else policy


NOWHERE = Directions()


class Routes(tuple[RoutingRow, ...]):
    """The table, whose rows are found by what they name."""

    def __init__(self, _rows: Iterable[RoutingRow] = ()) -> None:
        self._by_name: dict[tuple[str, str | None, str, str], list[tuple[int, RoutingRow]]] = {}
        for number, row in enumerate(self, 1):
            name = ("chat", row.chat) if row.chat else ("person", row.person or "")
            self._by_name.setdefault((row.platform, row.account, *name), []).append((number, row))

    def near(self, source: SessionSource) -> Iterator[tuple[int, RoutingRow]]:
        """The rows that may be about the place of a message, with their numbers."""
        chats = {source.chat_id, source.chat_id_alt, source.parent_chat_id} - {"", None}
        people = {"", source.user_id, source.user_id_alt} - {None}
        names = [*(("chat", each) for each in chats), *(("person", each) for each in people)]
        for kind, name in names:
            place = (str(source.platform), source.account or None, kind, str(name))
            yield from self._by_name.get(place, ())


def direct(source: SessionSource, rows: Routes) -> Directions:
    """What holds at the place of a message: each from the row that names the place most closely."""
    found = [(close, number, row) for number, row in rows.near(source) if (close := row.closeness(source))]
    if not found:
        return NOWHERE
    said: dict[str, Any] = {"limits": {}}
    told: dict[str, str] = {}
    for _, number, row in sorted(found, key=lambda each: each[0]):  # a closer one comes later, and wins
        for name, value in _said(row):
            said[name] = {**said["limits"], **row.limits} if name == "limits" else value
            told[name] = f"row {number} ({row})"
    return Directions(**said, rows=told)


def _said(row: RoutingRow) -> Iterator[tuple[str, Any]]:
    return ((name, value) for name in WHAT if (value := getattr(row, name)))


def check_table(rows: tuple[RoutingRow, ...], profiles: Mapping[str, Profile]) -> None:
    """Refuse rows about the same place, accounts that are said twice, and profiles that are not there."""
    owners: dict[str, str] = {}
    for name, profile in profiles.items():
        if not PROFILE_NAME.fullmatch(name) or name == DEFAULT:
            raise errors.InvalidSetting(key="profiles", value=name, allowed=PROFILE_NAMES)
        for account in profile.accounts:
            if account in owners:
                allowed = f"an account of one profile: {owners[account]} has it"
                raise errors.InvalidSetting(key=f"profiles.{name}.accounts", value=account, allowed=allowed)
            owners[account] = name
    places: dict[tuple[str | None, ...], int] = {}
    for number, row in enumerate(rows, 1):
        if row.place in places:
            allowed = f"one row for each place: row {places[row.place]} is about the same"
            raise errors.InvalidSetting(key=f"routes (row {number})", value=str(row), allowed=allowed)
        places[row.place] = number
        if named(row.profile) and row.profile not in profiles:
            known = ", ".join([DEFAULT, *profiles])
            raise errors.InvalidSetting(
                key=f"routes (row {number}).profile", value=row.profile, allowed=known
            )
