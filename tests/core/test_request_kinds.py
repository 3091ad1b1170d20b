"""What makes a server do something or give something out has a kind; what the gateway answers by itself has none."""

from __future__ import annotations

import pytest

from pactgate.core.request_kinds import KINDS, kind_of
from pactgate.protocol.versions import METHODS

OWN = {"initialize", "ping", "server/discover", "logging/setLevel"}


def test_every_method_of_the_protocol_has_a_kind_or_is_answered_by_the_gateway() -> None:
    assert set(METHODS) - set(KINDS) == OWN | {method for method in METHODS if method.endswith("/list")} - {
        "tasks/list"
    }


@pytest.mark.parametrize(
    ("method", "kind"),
    [("tools/call", "call"), ("tasks/list", "task"), ("x/y", "extension"), ("tools/list", None), ("tools/Call", None)],
)
def test_a_method_has_one_kind_or_none(method: str, kind: str | None) -> None:
    assert kind_of(method) == kind
