"""The one question every path asks before something of a server is used: is it permitted, for these arguments?

What a caller may not use at all is not in its catalog, so its name is not found. A client that used a name which exists, but not for it,
is told the text of the rule that denies it, where the rule has one; else the name does not exist. The rule is noted for audit and
`explain`. Must not: say more to a client that is denied than to one that asks for a name nobody has.
"""

from __future__ import annotations

from typing import Final

from pactgate.catalog.index import EntryKind
from pactgate.catalog.name_resolution import NameResolution
from pactgate.core.context import ExecutionContext
from pactgate.core.events import Emit, PermissionUndecided
from pactgate.core.failures import GatewayFailure, Kind
from pactgate.policy.permissions.rules import Denied, Grant

_NOT_THESE: Final = "These arguments are not permitted."


def require_permitted(
    ctx: ExecutionContext, grant: Grant, arguments: bytes, name: str, server: str, emit: Emit
) -> bytes:
    """Note the rule that allows a request, and return what the envelope says of it. Raises if its arguments are not permitted.

    The caller sees the tool or prompt in its lists, so this is no unknown name.
    """
    decided = grant.decide(arguments)
    ctx.rule = decided.applied if decided.applied.revision else None
    if not isinstance(decided, Denied):
        return decided.envelope
    if decided.trouble:
        emit(
            PermissionUndecided(
                request_id=ctx.request_id,
                server=server,
                name=name,
                rule=decided.applied.number or 0,
                place=decided.applied.place,
                reason=decided.trouble,
            )
        )
    raise _forbidden(decided.say or _NOT_THESE, ctx, name, server)


def explain_unknown(
    names: NameResolution, kind: EntryKind | None, ctx: ExecutionContext, failure: GatewayFailure
) -> GatewayFailure:
    """The failure for a name that a caller does not have: what a rule says about it, else the one for names that nobody has."""
    name = ctx.requested or ""
    denied = names.why_denied(kind, name, ctx.caller.scope, ctx.caller)
    if denied is None:
        return failure
    ctx.rule = denied.applied
    return failure if denied.say is None else _forbidden(denied.say, ctx, name, None)


def _forbidden(text: str, ctx: ExecutionContext, name: str, server: str | None) -> GatewayFailure:
    return GatewayFailure(Kind.FORBIDDEN, text, server=server, tool=name, operation=ctx.method)
