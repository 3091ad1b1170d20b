"""Rate limits as files give them."""

from __future__ import annotations

from typing import Any

import pytest

from pactgate.config.problems import ConfigurationError
from pactgate.config.sections.rate_limits import ToolRate
from tests.config.sections.test_limits import loaded


@pytest.mark.requirement("S2/MCP-006")
def test_limits_are_turned_on_and_set_by_class_and_by_tool(tmp_path: Any) -> None:
    given = {"enabled": True, "read": {"burst": 7}, "tools": {"files.*": {"rpm": 60, "burst": 2}}}
    rates = loaded(tmp_path, rateLimits=given).rate_limits
    assert rates.enabled
    assert (rates.read.rpm, rates.read.burst) == (200, 7)
    assert rates.tools == {"files.*": ToolRate(rpm=60, burst=2)}


@pytest.mark.parametrize(
    "setting", [{"read": {"rpm": 0}}, {"read": {"burst": 1001}}, {"tools": {"x": {"rpm": 5}}}, {"write": {}}]
)
def test_limits_that_can_not_be_meant_are_problems(setting: Any, tmp_path: Any) -> None:
    with pytest.raises(ConfigurationError) as caught:
        loaded(tmp_path, rateLimits=setting)
    assert caught.value.problems[0].path.startswith("rateLimits")
