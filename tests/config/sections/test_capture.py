"""The section `capture`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pactgate.config.problems import ConfigurationError
from tests.config.sections.test_limits import loaded


def test_nothing_is_recorded_unless_a_folder_is_named(tmp_path: Any) -> None:
    assert loaded(tmp_path).capture.dir is None


def test_a_relative_folder_starts_at_the_folder_of_the_file(tmp_path: Any) -> None:
    found = loaded(tmp_path, capture={"dir": "here/captures"}).capture.dir
    assert found is not None
    assert Path(found).is_absolute()
    assert Path(found).is_relative_to(tmp_path)
    assert loaded(tmp_path, capture={"dir": "/elsewhere"}).capture.dir == "/elsewhere"


@pytest.mark.parametrize(
    "setting", [{"dir": ""}, {"legs": "none"}, {"maxFiles": 0}, {"maxFileBytes": 1}, {"folder": "x"}]
)
def test_what_can_not_be_meant_is_a_problem(setting: Any, tmp_path: Any) -> None:
    with pytest.raises(ConfigurationError) as caught:
        loaded(tmp_path, capture=setting)
    assert caught.value.problems[0].path.startswith("capture")
