"""A setting written to the operator's file: in each format, with what was there before, or not at all."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Any

import pytest

from pactgate.config import change
from pactgate.config.load import load
from pactgate.config.model import Config
from pactgate.config.persist import keep
from pactgate.core.failures import GatewayFailure, Kind
from tests.config.writing import written

TEXTS = {
    ".json": '{"mcpServers": {"files": {"command": "x", "env": {"KEY": "${KEY}"}}}, "limits": {"maxArraySize": 100}}\n',
    ".jsonc": """\
{
  // what it is for
  "mcpServers": {
    "files": { "command": "x", "env": { "KEY": "${KEY}" } }, // a program
  },
  "limits": { "maxArraySize": 100 } // small
}
""",
    ".yaml": """\
# what it is for
mcpServers:
  files:
    command: x
    env: {KEY: "${KEY}"}  # a secret
limits:
  maxArraySize: 100  # small
""",
    ".toml": """\
# what it is for
[mcpServers.files]
command = "x"
env = { KEY = "${KEY}" } # a secret

[limits]
maxArraySize = 100 # small
""",
}
CHANGES: list[tuple[str, Any]] = [
    ("limits.maxArraySize", 5),
    ("limits.maxObjectDepth", 7),
    ('rateLimits.tools["files.*"]', {"rpm": 5, "burst": 2}),
    ("naming.exposed", "dot"),
    ("mcpServers.files.enabled", False),
]


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KEY", "hunter2-hunter2")


def read(path: Path) -> Config:
    return load(path, environ=os.environ)


@pytest.mark.parametrize("suffix", TEXTS)
def test_every_format_takes_changes_one_after_the_other_and_keeps_comments_variables_and_mode(
    tmp_path: Path, suffix: str
) -> None:
    path = written(tmp_path, TEXTS[suffix], suffix)
    path.chmod(0o640)
    running = read(path)
    for name, value in CHANGES:
        at = change.read_path(name)
        keep(running, at, value)
        running = change.plan(running, at, value)
        assert change.is_same_file(read(path), running)
    text = path.read_text()
    comments = [line.partition(mark)[2] for line in TEXTS[suffix].splitlines() for mark in ("//", "# ") if mark in line]
    assert all(comment in text for comment in comments)
    assert "${KEY}" in text
    assert "hunter2" not in text
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_of_vs_code_is_edited_under_its_own_key(tmp_path: Path) -> None:
    path = written(tmp_path, '{"servers": {"files": {"command": "x"}}}')
    keep(read(path), ("mcpServers", "files", "enabled"), False)
    assert path.read_text() == '{"servers": {"files": {"command": "x", "enabled": false}}}'


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    path = written(tmp_path, TEXTS[".json"])
    link = tmp_path / "elsewhere.json"
    link.symlink_to(path)
    keep(read(link), ("limits", "maxArraySize"), 5)
    assert link.is_symlink()
    assert read(path).limits.max_array_size == 5


def refused(path: Path, running: Config, name: str, value: Any) -> GatewayFailure:
    before = path.read_bytes()
    with pytest.raises(GatewayFailure) as raised:
        keep(running, change.read_path(name), value)
    assert path.read_bytes() == before
    assert list(path.parent.iterdir()) == [path]
    return raised.value


def test_a_file_that_somebody_changed_meanwhile_is_left_alone(tmp_path: Path) -> None:
    path = written(tmp_path, TEXTS[".json"])
    running = read(path)
    path.write_text(TEXTS[".json"].replace("100", "50"))
    assert refused(path, running, "limits.maxArraySize", 5).kind is Kind.CONFLICT


def test_a_file_that_is_broken_meanwhile_is_left_alone(tmp_path: Path) -> None:
    path = written(tmp_path, TEXTS[".json"])
    running = read(path)
    path.write_text("{")
    assert "problems at the moment" in refused(path, running, "limits.maxArraySize", 5).message


def test_a_value_without_a_safe_place_is_left_to_a_person(tmp_path: Path) -> None:
    text = "timeouts: {toolOverrides: &same {a.b: 100}}\nlimits: {maxArraySize: 100, toolArrayLimits: *same}\n"
    path = written(tmp_path, text, ".yaml")
    name = 'timeouts.toolOverrides["a.b"]'
    failure = refused(path, read(path), name, 500)
    assert f"write {name} = 500 into {path.name} by hand" in failure.message
    assert f"remove {name} from {path.name} by hand" in refused(path, read(path), name, None).message


def test_a_result_that_is_no_good_configuration_is_not_written(tmp_path: Path) -> None:
    path = written(tmp_path, '{"mcpServers": {"files": {"command": "x", "disabled": true}}}')
    failure = refused(path, read(path), "mcpServers.files.enabled", True)
    assert failure.kind is Kind.CHANGE_UNDONE
    assert "enabled and disabled contradict each other" in failure.message


@pytest.mark.parametrize("suffix", TEXTS)
def test_a_value_set_to_null_is_removed_from_the_file(tmp_path: Path, suffix: str) -> None:
    path = written(tmp_path, TEXTS[suffix], suffix)
    keep(read(path), ("limits", "maxArraySize"), None)
    assert "maxArraySize" not in path.read_text()
    after = path.read_text()
    keep(read(path), ("limits", "maxObjectDepth"), None)
    assert path.read_text() == after


def test_without_a_file_there_is_nothing_to_write_to() -> None:
    with pytest.raises(GatewayFailure, match="no configuration file"):
        keep(Config(), ("limits", "maxArraySize"), 5)
