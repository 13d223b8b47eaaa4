"""frontdesk: the session gateway for AI agents."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from frontdesk.app import SessionStore as SessionStore
    from frontdesk.contracts.clock import Clock as Clock
    from frontdesk.contracts.clock import SystemClock as SystemClock
    from frontdesk.errors import FrontdeskError as FrontdeskError
    from frontdesk.flow.context import build_session_context as build_session_context
    from frontdesk.flow.context import build_session_context_prompt as build_session_context_prompt
    from frontdesk.flow.limits import ephemeral_prompt as ephemeral_prompt
    from frontdesk.flow.limits import limit_warning as limit_warning
    from frontdesk.flow.notices import reset_note as reset_note
    from frontdesk.flow.notices import reset_notice as reset_notice
    from frontdesk.model.checkpoints import Checkpoint as Checkpoint
    from frontdesk.model.confirmations import ConfirmationRequest as ConfirmationRequest
    from frontdesk.model.contexts import SessionContext as SessionContext
    from frontdesk.model.gateway import GatewayConfig as GatewayConfig
    from frontdesk.model.keys import build_session_key as build_session_key
    from frontdesk.model.keys import is_shared_multi_user_session as is_shared_multi_user_session
    from frontdesk.model.messages import Role as Role
    from frontdesk.model.people import Principal as Principal
    from frontdesk.model.people import Viewer as Viewer
    from frontdesk.model.platforms import HomeChannel as HomeChannel
    from frontdesk.model.platforms import Platform as Platform
    from frontdesk.model.platforms import PlatformConfig as PlatformConfig
    from frontdesk.model.policies import EndReason as EndReason
    from frontdesk.model.policies import ResetMode as ResetMode
    from frontdesk.model.policies import SessionResetPolicy as SessionResetPolicy
    from frontdesk.model.searches import Hit as Hit
    from frontdesk.model.sessions import Session as Session
    from frontdesk.model.sessions import SessionEntry as SessionEntry
    from frontdesk.model.sessions import Usage as Usage
    from frontdesk.model.sources import ChatType as ChatType
    from frontdesk.model.sources import SessionSource as SessionSource
    from frontdesk.model.whatsapp import canonical_whatsapp_identifier as canonical_whatsapp_identifier
    from frontdesk.model.whatsapp import normalize_whatsapp_identifier as normalize_whatsapp_identifier
    from frontdesk.snapshots.manager import CheckpointManager as CheckpointManager
    from frontdesk.web.confirmations.embedded import ConfirmationServer as ConfirmationServer

_NAMES = {
    "frontdesk.app": "SessionStore",
    "frontdesk.contracts.clock": "Clock SystemClock",
    "frontdesk.errors": "FrontdeskError",
    "frontdesk.flow.context": "build_session_context build_session_context_prompt",
    "frontdesk.flow.limits": "ephemeral_prompt limit_warning",
    "frontdesk.flow.notices": "reset_note reset_notice",
    "frontdesk.model.checkpoints": "Checkpoint",
    "frontdesk.model.confirmations": "ConfirmationRequest",
    "frontdesk.model.contexts": "SessionContext",
    "frontdesk.model.gateway": "GatewayConfig",
    "frontdesk.model.keys": "build_session_key is_shared_multi_user_session",
    "frontdesk.model.messages": "Role",
    "frontdesk.model.people": "Principal Viewer",
    "frontdesk.model.platforms": "HomeChannel Platform PlatformConfig",
    "frontdesk.model.policies": "EndReason ResetMode SessionResetPolicy",
    "frontdesk.model.searches": "Hit",
    "frontdesk.model.sessions": "Session SessionEntry Usage",
    "frontdesk.model.sources": "ChatType SessionSource",
    "frontdesk.model.whatsapp": "canonical_whatsapp_identifier normalize_whatsapp_identifier",
    "frontdesk.snapshots.manager": "CheckpointManager",
    "frontdesk.web.confirmations.embedded": "ConfirmationServer",
}
"""The public names of each module."""
_EXPORTS = {name: module for module, names in _NAMES.items() for name in names.split()}
__all__ = list(_EXPORTS)


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used, so that nothing is loaded for nothing."""
    if name not in _EXPORTS:
        raise AttributeError(f"module 'frontdesk' has no attribute {name!r}")
    value = getattr(import_module(_EXPORTS[name]), name)
    globals()[name] = value
    return value
