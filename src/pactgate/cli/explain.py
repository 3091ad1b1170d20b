"""`pactgate explain`: the story of one call, from the running gateway or, when it does not know it any more, from the audit log."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from pactgate.cli import terminal
from pactgate.cli.gateway_client import GatewayClient, GatewayProblem
from pactgate.cli.table import Column, Styled, show_table

_COLUMNS: Final = (
    Column("TIME", from_width=110),
    Column("TOOL"),
    Column("CALLER", from_width=100),
    Column("OUTCOME"),
    Column("ACTION", from_width=90),
    Column("MS", is_number=True),
    Column("REQUEST"),
)
_STYLES: Final = {"ok": "green", "tool_error": "yellow"}
_MAX_SHOWN: Final = 20


def latest(client: GatewayClient, *, as_json: bool) -> int:
    """The last calls, to find the one that is meant."""
    page = client.get("/api/calls")
    rows = [row for row in page.get("calls", ()) if isinstance(row, dict)] if isinstance(page, dict) else []
    if as_json:
        terminal.say_json(rows)
    elif not rows:
        terminal.say("Nothing was called yet, or nothing you may see.")
    else:
        show_table(_COLUMNS, map(_cells, rows[:_MAX_SHOWN]))
    return 0


def explain(client: GatewayClient, request_id: str, *, log: Path | None, as_json: bool) -> int:
    """1 when nobody knows the call."""
    story, problem = _from_gateway(client, request_id)
    if story is None and log is not None:
        story = _from_log(log, request_id)
    if story is None:
        known = problem.message if problem else f"The gateway at {client.url} does not know it, or not any more."
        looked = f"It is not in the audit log {log} either." if log else "There is no audit log here to look into."
        terminal.problem(
            f"Nothing is known of the call {request_id}. {known} {looked}",
            "`pactgate explain` lists the calls it knows; --audit names a log.",
        )
        return 1
    if as_json:
        terminal.say_json(story)
    else:
        _show(story)
    return 0


def _from_gateway(client: GatewayClient, request_id: str) -> tuple[dict[str, Any] | None, GatewayProblem | None]:
    from urllib.parse import quote

    try:
        page = client.get(f"/api/calls/{quote(request_id, safe='')}")
    except GatewayProblem as problem:
        return None, problem
    known = isinstance(page, dict) and page.get("requestId") == request_id
    return (page if known else None), None


def _from_log(log: Path, request_id: str) -> dict[str, Any] | None:
    from pactgate.app import build
    from pactgate.audit.call_history import told
    from pactgate.audit.verify import files_of, find_call
    from pactgate.config.model import Config

    try:
        facts = find_call(files_of(log), request_id)
    except OSError as error:
        terminal.warning(f"{error.filename} can't be read: {error.strerror}.")
        return None
    if facts is None:
        return None
    gates = [gate.name for gate in build(Config(), lambda event: None).tool_call.gates]
    return told(facts, gates, source=f"audit log {log}")


def _cells(row: Mapping[str, Any]) -> list[Any]:
    outcome = str(row.get("outcome"))
    return [
        row.get("time"),
        row.get("tool"),
        row.get("subject"),
        Styled(outcome if row.get("code") is None else f"{outcome} {row['code']}", _STYLES.get(outcome, "red")),
        str(row.get("verdict")).replace("_", " "),
        f"{row.get('durationMs', 0):.1f}",
        row.get("requestId"),
    ]


def _show(story: Mapping[str, Any]) -> None:
    outcome = str(story.get("outcome"))
    name = story.get("tool") or story.get("requested") or "a call"
    terminal.title(f"{name}: {outcome.replace('_', ' ')} in {story.get('durationMs', 0):.1f} ms")
    for label, text in _lines(story):
        if text:
            terminal.item(label, "dim", text)


def _lines(story: Mapping[str, Any]) -> list[tuple[str, str]]:
    return [
        ("id", f"{story.get('requestId')}, {story.get('time')}, told by the {story.get('source')}"),
        ("who", _join(story.get("subject"), story.get("client"), f"{story.get('era')} {story.get('version')}")),
        ("what", _what(story)),
        ("args", terminal.compact(story["arguments"]) if story.get("arguments") is not None else ""),
        ("gates", _gates(story)),
        ("cache", "the answer was a kept one; the server was not asked" if story.get("cached") else ""),
        ("server", f"it speaks {story['revision']}" if story.get("revision") else ""),
        ("output", _output(story)),
        ("effect", _effects(story)),
        ("error", _failure(story)),
        ("why", str(story.get("message") or "")),
        ("next", str(story.get("next") or "")),
    ]


def _what(story: Mapping[str, Any]) -> str:
    if not story.get("tool"):
        return f"{story.get('requested') or 'params without a name'}, which is no tool that could be found"
    asked = story.get("requested")
    asked_as = f"asked for as {asked}" if asked and asked != story["tool"] else ""
    through = f"through {story['via']}" if story.get("via") else ""
    return _join(f"{story['tool']} on {story.get('server')}", story.get("category"), asked_as, through)


def _gates(story: Mapping[str, Any]) -> str:
    gates = [gate for gate in story.get("gates", ()) if isinstance(gate, dict)]
    by_state = {
        state: [str(gate.get("gate")) for gate in gates if gate.get("state") == state]
        for state in ("passed", "skipped", "stopped", "not reached")
    }
    words = {"passed": "passed", "skipped": "went round", "stopped": "stopped at", "not reached": "did not reach"}
    return "; ".join(f"{words[state]} {', '.join(names)}" for state, names in by_state.items() if names)


def _output(story: Mapping[str, Any]) -> str:
    checked = "it fits the schema its tool declares" if story.get("validated") else ""
    return _join(checked, "it was cut, because it was too long" if story.get("truncated") else "")


def _effects(story: Mapping[str, Any]) -> str:
    operations = [one for one in story.get("operations") or () if isinstance(one, dict)]
    done = "; ".join(f"{one.get('kind')} {one.get('target', '')}".strip() for one in operations[:_MAX_SHOWN])
    broken = "; ".join(str(one) for one in story.get("violations") or ())
    return _join(story.get("effects"), f"seen: {done}" if done else "", f"undeclared: {broken}" if broken else "")


def _failure(story: Mapping[str, Any]) -> str:
    if story.get("code") is None:
        return ""
    who = f"{story['party']} has to act" if story.get("party") else ""
    return _join(story["code"], f"the action {str(story.get('verdict')).replace('_', ' ')}", who)


def _join(*parts: Any) -> str:
    return ", ".join(str(part) for part in parts if part)
