"""Times, sizes and categories as files give them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pactgate.config.load import load
from pactgate.config.model import Config
from pactgate.config.problems import ConfigurationError
from pactgate.config.sections.limits import CATEGORY_TIMEOUTS_MS


def loaded(tmp_path: Path, **sections: Any) -> Config:
    file = tmp_path / "pactgate.json"
    file.write_text(json.dumps({"mcpServers": {"files": {"command": "x"}}, **sections}))
    file.chmod(0o600)
    return load(file, environ={}, overrides={})


@pytest.mark.requirement("S1/TIMEOUT-002")
@pytest.mark.requirement("S1/LIMIT-001")
def test_without_a_word_the_documents_own_figures_hold(tmp_path: Path) -> None:
    config = loaded(tmp_path)
    timeouts, limits = config.timeouts, config.limits
    assert timeouts.default_timeout_ms == 30000
    assert CATEGORY_TIMEOUTS_MS == {"query": 10000, "mutation": 30000, "scan": 120000, "execution": 1200000}
    assert (limits.max_array_size, limits.max_string_length, limits.max_object_depth) == (100, 100000, 10)
    assert limits.max_request_bytes == 10485760


@pytest.mark.requirement("S1/TIMEOUT-003")
@pytest.mark.parametrize(
    ("section", "setting"),
    [
        ("timeouts", {"toolOverrides": {"files.read": 0}}),
        ("timeouts", {"toolOverrides": {"files.read": -5}}),
        ("timeouts", {"toolTimeouts": {"query": 0}}),
        ("timeouts", {"defaultTimeoutMs": 0}),
        ("limits", {"maxArraySize": -1}),
        ("limits", {"toolArrayLimits": {"files.read": "many"}}),
        ("limits", {"maxObjectDepth": 0}),
        ("limits", {"maxInFlight": 0}),
        ("categories", {"files.*": "dangerous"}),
    ],
)
def test_limits_that_can_not_be_meant_are_problems(section: str, setting: Any, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError) as caught:
        loaded(tmp_path, **{section: setting})
    assert caught.value.problems[0].path.startswith(section)
