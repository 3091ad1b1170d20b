"""The state of one server as operators and commands see it: the members of the requirement document, and further facts.

Must not: decide who sees which (`policy.access.shown_row` does).
"""

from __future__ import annotations

from typing import Any, Final

from pactgate.catalog.supervisor import Supervisor
from pactgate.config.server_settings import ServerConfig
from pactgate.core.failures import EcosystemCode
from pactgate.protocol.versions import Era

_MAY_HIDE: Final = (
    "tools for clients with elicitation, roots or sampling may be missing, because all clients share one list; "
    'set "isolation": "session"'
)
_UNANSWERED: Final = "does not answer; the gateway is checking whether it hangs"


def server_row(supervisor: Supervisor) -> dict[str, Any]:
    session, found, listing = supervisor.session, supervisor.lists.found, supervisor.lists.failure
    identity, not_reloaded = supervisor.identity, supervisor.tool_reports.not_reloaded
    silence = _UNANSWERED if session and session.peer.is_unanswered else None
    return {
        "serverId": supervisor.config.id,
        "status": supervisor.status.value,
        "isIdle": supervisor.is_asleep,
        "transport": session.transport if session else _expected_transport(supervisor.config),
        "era": identity.era.value if identity else None,
        "protocolVersion": identity.version if identity else None,
        "serverInfo": identity.server_info if identity else None,
        "toolCount": len(found.tools),
        "promptCount": len(found.prompts),
        "resourceCount": len(found.resources),
        "leftOut": [*found.left_out, *([f"its new version: {not_reloaded}"] if not_reloaded else [])],
        "lastError": supervisor.last_error or supervisor.lists.problem or silence,
        "mayHide": _may_hide(supervisor),
        "lastErrorCode": supervisor.last_error_code
        or (EcosystemCode.DISCOVERY_FAILED if listing is not None else None),
        "lastErrorDetail": supervisor.last_error_detail or (listing.message if listing is not None else None),
        "trouble": supervisor.trouble or silence,
        "lastConnectedAt": supervisor.last_connected_at,
        "lastDiscoveredAt": supervisor.lists.listed_at,
        "latencyMs": round(session.connect_ms, 1) if session else None,
        "attempts": supervisor.attempts,
        "history": list(supervisor.history),
        "callerSessions": len(supervisor.caller_sessions),
        "pid": session.pid if session else None,
        "effectsLevel": session.effects_level if session else None,
    }


def _may_hide(supervisor: Supervisor) -> str | None:
    """What the shared lists may lack: a legacy server learns at its handshake what its client offers, here nothing."""
    session, config = supervisor.session, supervisor.config
    if session is None or session.identity.era is not Era.LEGACY or session.peer.capabilities or config.tools:
        return None
    return _MAY_HIDE if config.isolation != "session" else None


def _expected_transport(config: ServerConfig) -> str | None:
    if config.unresolved is not None:
        return None
    if config.endpoints is not None or config.openapi is not None:
        return "rest"
    return "stdio" if config.url is None else "http"
