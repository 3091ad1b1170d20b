"""A refusal of arguments names no rule, and every refusal notes one."""

from __future__ import annotations

import pytest

from pactgate.core.events import Event, PermissionUndecided
from pactgate.core.failures import GatewayFailure, Kind
from pactgate.core.principal import Principal
from pactgate.pipeline.permission import require_permitted
from pactgate.policy.permissions.rules import Grant, Permissions
from pactgate.policy.permissions.selection import Subject
from tests.support.callers import context
from tests.support.permitted import allow, config_with


def grant() -> Grant:
    permissions = Permissions(config_with(allow("a.x", when="arguments.n < 5"), rule_places=("p.json:1:1",)))
    found = permissions.decide(permissions.key_of(Principal("some")), Subject("a", "a.x"))
    assert isinstance(found, Grant)
    return found


def test_an_allowed_call_gets_the_rule_for_its_envelope() -> None:
    ctx, events = context(), list[Event]()
    members = require_permitted(ctx, grant(), b'{"n":1}', "a.x", "a", events.append)
    assert members.startswith(b'"rule":1,"policyRevision":"')
    assert ctx.rule is not None
    assert (ctx.rule.number, ctx.rule.place, events) == (1, "p.json:1:1", [])


@pytest.mark.parametrize(("arguments", "is_undecided"), [(b'{"n":7}', False), (b"{}", False), (b'{"n":"1"}', True)])
def test_refused_arguments_are_forbidden_and_what_can_not_be_decided_is_an_event(
    arguments: bytes, is_undecided: bool
) -> None:
    ctx, events = context(), list[Event]()
    with pytest.raises(GatewayFailure) as raised:
        require_permitted(ctx, grant(), arguments, "a.x", "a", events.append)
    assert raised.value.kind is Kind.FORBIDDEN
    assert "rule" not in raised.value.message
    assert ctx.rule is not None
    assert ctx.rule.number == 1
    assert [type(event) for event in events] == ([PermissionUndecided] if is_undecided else [])
