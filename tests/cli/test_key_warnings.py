"""`check` warns of groups of API keys that nothing looks at, and of keys that are not there."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.cli.program import run, write_config

SERVERS = {"crm": {"url": "http://127.0.0.1:1/mcp"}}


def warnings(folder: Path, callers: dict[str, Any], *rules: dict[str, Any]) -> list[str]:
    write_config(folder, SERVERS, callers=callers, permissions=list(rules))
    return [f"{one['path']} {one['message']}" for one in json.loads(run(folder, "check", "--json").stdout)["warnings"]]


def test_groups_of_keys_and_keys_of_classes_are_held_against_each_other(tmp_path: Path) -> None:
    write_config(tmp_path, SERVERS)
    assert run(tmp_path, "keys", "add", "ci", "--groups", "build,oncall").returncode == 0
    rule = {"allow": "*", "to": "*"}
    every = {"allow": "crm.*", "to": "ci"}
    assert warnings(tmp_path, {"ci": {"keys": ["ci"]}}, rule, every) == [
        'auth.keys The key "ci" has the group "build", which no rule looks at.',
        'auth.keys The key "ci" has the group "oncall", which no rule looks at.',
    ]
    condition = {**rule, "unless": "'oncall' in caller.groups"}
    assert warnings(tmp_path, {"ci": {"groups": ["build"]}}, condition, every) == []
    unknown = {"ci": {"keys": ["cli"], "groups": ["build"]}}
    assert warnings(tmp_path, unknown, condition, every) == ['callers.ci.keys There is no key "cli".']
