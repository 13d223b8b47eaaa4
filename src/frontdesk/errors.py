"""Every error frontdesk raises, as one tree.

FrontdeskError
├── InvalidInput              what was handed in cannot be used; nothing was changed
│   ├── InvalidSource
│   ├── UnknownPlatform
│   ├── UnsafeKey
│   ├── UnsafeSessionId
│   ├── InvalidEntry
│   ├── InvalidMessage
│   ├── InvalidTitle
│   ├── InvalidQuery
│   ├── InvalidSetting
│   │   └── UnknownSetting
│   ├── InvalidConfigFile     not TOML
│   └── UnreadableConfigFile
├── Unroutable                an event without any address
├── TitleTaken
├── IllegalMove               a state change that the table of moves does not have
├── UnknownSession            a write to a session that does not exist
└── StoreError
    ├── UnknownStore
    ├── StoreLocked           the file has an owner already
    ├── ForeignDatabase       not ours
    ├── NewerDatabase         ours, from a newer version
    ├── CorruptDatabase
    ├── NetworkFilesystem
    ├── ReadOnlyStore
    │   └── ReadOnlyServer
    ├── UnsuitableServer      the database server cannot hold the store
    ├── StoreFull
    ├── StoreFailed           I/O error
    ├── StoreUnavailable      the database server does not answer
    └── StoreClosed

A class's docstring is its message; the words in braces are its fields.
"""

import inspect


class FrontdeskError(Exception):
    """frontdesk failed."""

    def __init__(self, **fields: object) -> None:
        self.__dict__.update(fields)
        template = inspect.cleandoc(self.__doc__ or type(self).__name__)
        super().__init__(template.format(**fields))


class InvalidInput(FrontdeskError, ValueError):
    """{what} cannot be used: {why}"""


class InvalidSource(InvalidInput):
    """Not a usable message source: {why}"""


class UnknownPlatform(InvalidInput):
    """Unknown platform {name!r}. Known: {known}. A plug-in adds one with Platform.register(name)."""


class UnsafeKey(InvalidInput):
    """Session key {key!r} refused: {why}"""


class UnsafeSessionId(InvalidInput):
    """Session id {session_id!r} refused: {why}"""


class InvalidEntry(InvalidInput):
    """Session entry {name!r} cannot be read: {why}"""


class InvalidMessage(InvalidInput):
    """Message refused: {why}"""


class InvalidTitle(InvalidInput):
    """Title {title!r} refused: {why}"""


class InvalidQuery(InvalidInput):
    """Search for {query!r} refused: {why}"""


class InvalidSetting(InvalidInput):
    """Setting {key} is {value!r}; allowed: {allowed}"""


class UnknownSetting(InvalidSetting):
    """There is no setting {key}.{hint}"""


class InvalidConfigFile(InvalidInput):
    """{path}, line {line}, is not valid TOML: {why}"""


class UnreadableConfigFile(InvalidInput):
    """The configuration file {path} cannot be read: {why}"""


class Unroutable(FrontdeskError):
    """The event names no chat, user or thread, so it has no conversation (it would get the bare key {key}).
    The channel must fill in chat_id."""


class TitleTaken(FrontdeskError):
    """Another conversation of yours is already called {title!r}. Choose another title."""


class IllegalMove(FrontdeskError):
    """A session that is {state} cannot become {wanted}."""


class UnknownSession(FrontdeskError):
    """There is no session {session_id!r}; nothing was stored."""


class StoreError(FrontdeskError):
    """The store failed."""


class UnknownStore(StoreError, ValueError):
    """No store for {url!r}. Use sqlite:///path/state.db or postgresql://user@host/database{hint}"""


class StoreLocked(StoreError):
    """{path} is in use by {holder}. Close it there, or open another file."""


class ForeignDatabase(StoreError):
    """{path} is not a frontdesk database ({why}). Choose another path; nothing was changed."""


class NewerDatabase(StoreError):
    """{path} was written by a newer frontdesk (schema {found}, this version knows {known}).
    Upgrade frontdesk, or restore a backup made before the upgrade; nothing was changed."""


class CorruptDatabase(StoreError):
    """{path} is damaged ({why}). Stop frontdesk, keep a copy of the file with its -wal file,
    and restore the last backup."""


class NetworkFilesystem(StoreError):
    """{path} lies on {filesystem}, where SQLite's locks do not hold. Use a local disk, or PostgreSQL."""


class ReadOnlyStore(StoreError):
    """{path} cannot be written. Give the user running frontdesk write access to the file and its folder."""


class ReadOnlyServer(ReadOnlyStore):
    """The database {path} cannot be written ({why}). Connect to the primary, as a role that may write."""


class UnsuitableServer(StoreError):
    """The database {path} cannot hold the store: {why}"""


class StoreFull(StoreError):
    """No room left on the disk of {path}; the write was not kept. Free some space: work goes on by itself."""


class StoreFailed(StoreError):
    """The disk or database failed under {path} ({why}); the write was not confirmed."""


class StoreUnavailable(StoreError):
    """The database {path} does not answer ({why}). Check that it runs and that the address is right."""


class StoreClosed(StoreError):
    """The store is closed."""
