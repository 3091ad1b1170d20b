"""The configuration of a running gateway: taken over when it changes, refused whole when it is wrong."""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.request import urlopen

from tests.cli.program import Served, write_config
from tests.support.eventually import eventually_blocking
from tests.support.servers import UPSTREAM


def entry(**options: Any) -> dict[str, Any]:
    return {"command": sys.executable, "args": [str(UPSTREAM), json.dumps(options)]}


def servers(served: Served) -> dict[str, dict[str, Any]]:
    with urlopen(f"{served.url}/api/servers", timeout=5) as answer:
        return {row["serverId"]: row for row in json.load(answer)["servers"]}


def until(served: Served, is_so: Callable[[dict[str, dict[str, Any]]], bool]) -> dict[str, dict[str, Any]]:
    return eventually_blocking(lambda: rows if is_so(rows := servers(served)) else {})


def all_connected(rows: dict[str, dict[str, Any]]) -> bool:
    return all(row["status"] == "connected" and row["toolCount"] for row in rows.values())


def logged(served: Served, event: str) -> dict[str, Any]:
    return eventually_blocking(lambda: [line for line in served.log_lines() if line["event"] == event])[-1]


def test_a_changed_file_adds_removes_and_changes_servers_without_touching_the_others(tmp_path: Path) -> None:
    write_config(tmp_path, {"keep": entry(), "change": entry(), "drop": entry()})
    with Served(tmp_path) as served:
        before = until(served, all_connected)
        write_config(tmp_path, {"keep": entry(), "change": entry(tools=["extra"]), "new": entry()})
        after = until(served, lambda rows: "new" in rows and all_connected(rows))
        assert set(after) == {"keep", "change", "new"}
        assert after["keep"]["pid"] == before["keep"]["pid"]
        assert after["change"]["pid"] != before["change"]["pid"]
        assert after["change"]["toolCount"] == before["change"]["toolCount"] + 1
        told = logged(served, "ConfigurationReloaded")
    assert (told["added"], told["removed"], told["changed"]) == (["new"], ["drop"], ["change"])


def test_a_file_with_problems_is_refused_whole_and_what_runs_goes_on(tmp_path: Path) -> None:
    path = write_config(tmp_path, {"keep": entry()})
    with Served(tmp_path) as served:
        before = until(served, all_connected)
        path.write_text('{"mcpServers": {"keep": {"comand": "x"}, "new": {"url": "ftp://x"}}, "limitz": {}}')
        told = logged(served, "ConfigurationRefused")
        assert len(told["problems"]) >= 3
        assert servers(served)["keep"]["pid"] == before["keep"]["pid"]
        assert set(servers(served)) == {"keep"}
        write_config(tmp_path, {"keep": entry(), "new": entry()})
        until(served, lambda rows: "new" in rows and all_connected(rows))


def test_a_hangup_signal_asks_for_the_file_at_once_and_says_what_needs_a_restart(tmp_path: Path) -> None:
    write_config(tmp_path, {"keep": entry()})
    with Served(tmp_path) as served:
        until(served, all_connected)
        write_config(tmp_path, {"keep": {**entry(), "enabled": False}}, sessions={"maxSessions": 5})
        served.process.send_signal(signal.SIGHUP)
        until(served, lambda rows: rows["keep"]["status"] == "disabled")
        assert logged(served, "ConfigurationReloaded")["needs_restart"] == ["sessions"]


def test_a_file_that_disappears_changes_nothing(tmp_path: Path) -> None:
    path = write_config(tmp_path, {"keep": entry()})
    with Served(tmp_path) as served:
        before = until(served, all_connected)
        path.unlink()
        served.process.send_signal(signal.SIGHUP)
        logged(served, "ConfigurationRefused")
        assert servers(served)["keep"]["pid"] == before["keep"]["pid"]
