"""What definitions cost, and a view proposed from recorded sessions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pactgate.cli.tool_cost import costs_of, hints_of
from pactgate.config.load import load
from pactgate.core.failures import ENVELOPE_KEY
from tests.cli.program import Served, demo, run, write_config


def row(server: str, name: str, size: int) -> dict[str, Any]:
    return {"serverId": server, "exposedName": f"{server}__{name}", "definitionBytes": size}


def test_the_largest_of_each_kind_comes_first() -> None:
    costs = costs_of(
        [row("a", "x", 10), row("b", "y", 401), row("a", "z", 30)], [{"view": "v", "toolCount": 1, "bytes": 10}]
    )
    assert [(cost.kind, cost.name, cost.tools, cost.bytes) for cost in costs] == [
        ("all", "all tools", 3, 441),
        ("view", "v", 1, 10),
        ("server", "b", 1, 401),
        ("server", "a", 2, 40),
        ("tool", "b__y", 1, 401),
        ("tool", "a__z", 1, 30),
        ("tool", "a__x", 1, 10),
    ]
    assert costs[0].tokens == 111


def test_limits_of_clients_and_many_bytes_are_hints() -> None:
    def hints(count: int, size: int) -> str:
        return " ".join(hints_of(costs_of([row("a", str(at), size) for at in range(count)])[0]))

    assert hints(40, 10) == ""
    assert "Cursor" in hints(41, 10)
    assert "VS Code" not in hints(128, 10)
    assert "VS Code" in hints(129, 10)
    assert "60000 bytes, about 15000 tokens" in hints(1, 60_000)


def test_the_cost_of_tools_and_views_is_shown_by_a_running_gateway(tmp_path: Path) -> None:
    views = {"small": {"tools": ["almanac.date_facts"]}, "lazy": {"tools": ["*"], "surface": "search"}}
    write_config(tmp_path, {"almanac": demo("almanac")}, views=views)
    with Served(tmp_path) as served:
        served.wait_for("ok +almanac ")
        costs = json.loads(run(tmp_path, "tools", "--cost", "--json").stdout)
        kinds = [cost["kind"] for cost in costs]
        assert kinds[0] == "all"
        assert {"view", "server", "tool"} <= set(kinds)
        by_name = {cost["name"]: cost for cost in costs}
        assert (by_name["small"]["tools"], by_name["lazy"]["tools"]) == (1, 3)
        assert by_name["small"]["bytes"] < by_name["all tools"]["bytes"]
        assert "all tools" in run(tmp_path, "tools", "--cost").stdout
        assert "/mcp/v/small" in run(tmp_path, "views", "list").stdout


def capture(label: str, *names: str, results: dict[str, Any] | None = None) -> dict[str, Any]:
    """A session whose calls succeeded, or whose responses are those in `results`."""
    exchanges = []
    for at, name in enumerate(names):
        said = (results or {}).get(name, {"result": {"content": []}})
        request = {"jsonrpc": "2.0", "id": at, "method": "tools/call", "params": {"name": name}}
        exchanges.append({"request": request, "response": {"jsonrpc": "2.0", "id": at, **said}})
    return {"server_label": label, "server_capabilities": {}, "exchanges": exchanges}


def stamped(server: str, tool: str, **more: Any) -> dict[str, Any]:
    """A response of a gateway."""
    return {"result": {"content": [], "_meta": {ENVELOPE_KEY: {"server": server, "tool": tool, **more}}}}


def test_a_view_is_proposed_from_the_tools_that_were_called(tmp_path: Path) -> None:
    write_config(tmp_path, {"github": {"url": "http://127.0.0.1:1/mcp"}, "files": {"url": "http://127.0.0.1:2/mcp"}})
    (tmp_path / "captures").mkdir()
    (tmp_path / "captures" / "one.json").write_text(
        json.dumps(capture("pactgate", "github__merge", "files.read", "github__merge"))
    )
    (tmp_path / "captures" / "two.json").write_text(json.dumps([capture("files", "list"), capture("other", "list")]))
    done = run(tmp_path, "views", "suggest", "--from", "captures", "--json")
    said = json.loads(done.stdout)
    assert said["views"] == {"suggested": {"tools": ["github.merge", "files.read", "files.list"]}}
    assert (said["sessions"], said["skippedCalls"]) == (3, 1)
    proposed = json.loads(run(tmp_path, "views", "suggest", "--from", "captures").stdout)
    settings = json.loads((tmp_path / "pactgate.json").read_text())
    (tmp_path / "pactgate.json").write_text(json.dumps(settings | proposed))
    assert load(tmp_path / "pactgate.json", environ={}).views["suggested"].tools[0] == "github.merge"


def test_calls_through_a_gateway_count_once_by_the_tool_that_ran(tmp_path: Path) -> None:
    """Whatever it is called in a view, and whoever calls it there; what was denied or does not exist was not used."""
    write_config(tmp_path, {"github": {"url": "http://127.0.0.1:1/mcp"}})
    results = {
        "review": stamped("github", "github.pull"),
        "call_tool": stamped("github", "github.merge"),
        "find_tools": stamped("pactgate", "pactgate.find_tools"),
        "github__drop": stamped("github", "github.drop", failure={"verdict": "did_not_run"}),
        "github__gone": {"error": {"code": -32602, "message": "No tool"}},
    }
    sessions = [capture("pactgate/mcp", *results, results=results), capture("github", "pull", "merge")]
    (tmp_path / "captures.json").write_text(json.dumps(sessions))
    said = json.loads(run(tmp_path, "views", "suggest", "--from", "captures.json", "--json").stdout)
    assert said["calls"] == {"github.pull": 1, "github.merge": 1}
    assert said["skippedCalls"] == 0


def test_sessions_without_calls_of_configured_servers_propose_nothing(tmp_path: Path) -> None:
    write_config(tmp_path, {"github": {"url": "http://127.0.0.1:1/mcp"}})
    (tmp_path / "one.json").write_text(json.dumps(capture("other", "list")))
    done = run(tmp_path, "views", "suggest", "--from", "one.json")
    assert done.returncode != 0
    assert "Servers: github" in done.stderr
