"""The audit log as files ask for it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pactgate.config.problems import ConfigurationError
from pactgate.config.sections.audit import AuditSection
from tests.config.sections.test_limits import loaded


def test_there_is_no_audit_log_unless_a_file_is_named(tmp_path: Path) -> None:
    assert loaded(tmp_path).audit == AuditSection()
    assert AuditSection().file is None


def test_a_relative_file_starts_at_the_folder_of_the_configuration(tmp_path: Path) -> None:
    assert loaded(tmp_path, audit={"file": "logs/../audit.jsonl"}).audit.file == str(tmp_path / "audit.jsonl")
    assert loaded(tmp_path, audit={"file": "/var/log/audit.jsonl"}).audit.file == "/var/log/audit.jsonl"


def test_by_default_values_stay_out_and_calls_without_a_record_do_not_happen(tmp_path: Path) -> None:
    audit = loaded(tmp_path, audit={"file": "a.jsonl"}).audit
    assert (audit.arguments, audit.on_failure, audit.fsync) == ("shape", "refuse", False)


@pytest.mark.parametrize(
    "setting",
    [
        {"file": ""},
        {"file": "~/a"},
        {"arguments": "all"},
        {"maxBytes": 1},
        {"maxFiles": 0},
        {"onFailure": "stop"},
        {"x": 1},
    ],
)
def test_settings_that_can_not_be_meant_are_problems(setting: Any, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError) as caught:
        loaded(tmp_path, audit=setting)
    assert caught.value.problems[0].path.startswith("audit")
