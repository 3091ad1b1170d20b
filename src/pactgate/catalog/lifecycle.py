"""The lifecycle of one server as a state machine: a table of (state, trigger) -> state.

The requirement document defines the five states. Enforces S0/ECO-200 and S0/ECO-201: a trigger without a row is a bug and changes nothing.
Must not: act; the supervisor acts.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from pactgate.core.values import ServerStatus


class Trigger(StrEnum):
    ATTEMPT_BEGAN = "attempt began"
    CONNECTED = "connected"
    ATTEMPT_FAILED = "attempt failed"
    GAVE_UP = "gave up"
    LOST = "lost"
    STOPPED = "stopped"
    DISABLED = "disabled"
    ENABLED = "enabled"


_S, _T = ServerStatus, Trigger

TRANSITIONS: Final[dict[tuple[ServerStatus, Trigger], ServerStatus]] = {
    (_S.DISCONNECTED, _T.ATTEMPT_BEGAN): _S.CONNECTING,
    (_S.ERROR, _T.ATTEMPT_BEGAN): _S.CONNECTING,
    (_S.CONNECTING, _T.ATTEMPT_BEGAN): _S.CONNECTING,
    (_S.CONNECTING, _T.CONNECTED): _S.CONNECTED,
    (_S.CONNECTING, _T.ATTEMPT_FAILED): _S.CONNECTING,
    (_S.CONNECTING, _T.GAVE_UP): _S.ERROR,
    (_S.CONNECTED, _T.LOST): _S.DISCONNECTED,
    (_S.DISCONNECTED, _T.STOPPED): _S.DISCONNECTED,
    (_S.CONNECTING, _T.STOPPED): _S.DISCONNECTED,
    (_S.CONNECTED, _T.STOPPED): _S.DISCONNECTED,
    (_S.ERROR, _T.STOPPED): _S.DISCONNECTED,
    (_S.DISCONNECTED, _T.DISABLED): _S.DISABLED,
    (_S.CONNECTING, _T.DISABLED): _S.DISABLED,
    (_S.CONNECTED, _T.DISABLED): _S.DISABLED,
    (_S.ERROR, _T.DISABLED): _S.DISABLED,
    (_S.DISABLED, _T.ENABLED): _S.DISCONNECTED,
}


class IllegalTransitionError(Exception):
    """The table has no row for this state and trigger."""


def next_status(status: ServerStatus, trigger: Trigger) -> ServerStatus:
    try:
        return TRANSITIONS[status, trigger]
    except KeyError:
        raise IllegalTransitionError(f"{status} has no row for {trigger}") from None
