"""Gateways with permissions: two classes of clients, and servers of which each may use a part."""

from __future__ import annotations

import json
import re
from typing import Any

from msgspec.structs import replace

from pactgate.config.model import Config
from pactgate.config.sections.permissions import CallerClass, PermissionRule
from pactgate.core.failures import Reply
from pactgate.core.principal import Principal, PrincipalKind
from pactgate.core.values import Caller
from pactgate.protocol.messages import encode_json
from pactgate.protocol.versions import Era
from tests.support.callers import caller

ALLOWED = ("a.heard", "a.steps", "a.later", "a.add", "a.poem", "a+data://a")
"""What the class `some` has of the server `a` (`changing_server.py`): not say, touch, crash, nor data://b, and nothing of `b`."""


def permitting(*rules: PermissionRule) -> dict[str, Any]:
    """Settings with these rules, for the token `some` and for all others."""
    return {"callers": {"some": CallerClass(tokens=("some",)), "rest": CallerClass()}, "permissions": rules}


def allow(*selectors: str, to: str = "some", **more: Any) -> PermissionRule:
    return PermissionRule(allow=selectors, to=(to,), **more)


def deny(*selectors: str, to: str = "some", **more: Any) -> PermissionRule:
    return PermissionRule(deny=selectors, to=(to,), **more)


def some(
    era: Era = Era.MODERN, *, scope: str | None = None, roles: frozenset[str] = frozenset(), **more: Any
) -> Caller:
    """A client of the class `some`."""
    return caller(era, key="some", scope=scope, roles=roles, **more)


def grouped(*groups: str, era: Era = Era.MODERN) -> Caller:
    """A client with a token of an identity provider."""
    made = caller(era, key="https://idp.example#eve")
    principal = Principal(made.principal.key, kind=PrincipalKind.OAUTH, subject="eve", groups=frozenset(groups))
    return replace(made, principal=principal)


def written(reply: Reply) -> bytes:
    """A reply as it goes out, without what differs from call to call."""
    said = reply.result if reply.result is not None else encode_json(reply.error)
    said = re.sub(rb'"requestId":"[^"]*"', b'"requestId":""', said)
    return re.sub(rb'"durationMs":\d+', b'"durationMs":0', said)


def listed(reply: Reply, member: str, key: str = "name") -> list[str]:
    assert reply.result is not None, reply
    return [entry[key] for entry in json.loads(reply.result)[member]]


def config_with(*rules: PermissionRule, **settings: Any) -> Config:
    return Config(**permitting(*rules), **settings)
