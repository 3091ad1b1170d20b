"""The modes of the lock file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pactgate.config.load import load
from pactgate.config.problems import ConfigurationError


def test_nothing_is_compared_unless_a_mode_is_given(tmp_path: Path) -> None:
    file = tmp_path / "pactgate.json"
    file.write_text("{}")
    assert load(file, environ={}).lock.mode == "off"
    file.write_text(json.dumps({"lock": {"mode": "warn"}}))
    with pytest.raises(ConfigurationError, match=r"hold, off, refuse, report"):
        load(file, environ={})
