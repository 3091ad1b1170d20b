from __future__ import annotations

import resource

import pytest

from pactgate.inbound.server_limits import ServerLimits, max_connections


@pytest.mark.parametrize(
    ("soft", "expected"), [(1024, 896), (100, 16), (1 << 20, 4096), (resource.RLIM_INFINITY, 4096)]
)
def test_connections_stay_below_the_descriptor_limit(monkeypatch: pytest.MonkeyPatch, soft: int, expected: int) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (soft, soft))
    assert max_connections() == expected
    assert ServerLimits().max_connections == expected
