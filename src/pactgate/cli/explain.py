"""`pactgate explain`: what happened in one call, from the running gateway or, for an older call, from the audit log."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import click

from pactgate.audit.gate_texts import gate_text
from pactgate.cli import terminal
from pactgate.cli.audit import CALL_COLUMNS, REQUEST_ID_CHARS, call_cells, configured_log, what
from pactgate.cli.call import executed
from pactgate.cli.errors import CommandError
from pactgate.cli.gateway_client import GatewayClient, GatewayClientError
from pactgate.cli.shared_options import config_option, with_gateway
from pactgate.cli.table import show_table

_MAX_SHOWN: Final = 20
_LABEL_CHARS: Final = 15
_LAST: Final = "last"
_BEGINNING: Final = re.compile(r"[\w-]*")
TIME_TEXTS: Final = {
    "server": "at the server",
    "queue": "in the queue of the server",
    "connection": "waiting for a connection to the server",
    "client": "waiting for the client",
    "gateway": "here",
}
_RESPONSIBLE: Final = {"caller": "client", "upstream": "server"}


@click.command(epilog="Examples: pactgate explain 0248e0a6, pactgate explain last, pactgate explain --failed")
@click.argument("request_id", metavar="[ID]", required=False)
@click.option("--failed", is_flag=True, help="List failed calls only; with `last`: the last one that failed.")
@click.option("--audit", metavar="FILE", help="Audit log to search. Default: audit.file of the configuration.")
@config_option
@with_gateway
def explain(
    client: GatewayClient,
    *,
    request_id: str | None,
    failed: bool,
    audit: str | None,
    config: str | None,
    as_json: bool,
) -> int:
    """Explain a call: who called what, how far it came, what ended it, what to do next.

    ID is the request id of the call, its beginning, or `last`. Without it the last calls are listed.
    """
    if failed and request_id not in (None, _LAST):
        raise CommandError("--failed lists calls, so it goes with no ID but `last`.")
    if request_id is None:
        return _list_calls(client, failed=failed, as_json=as_json)
    if request_id == _LAST or len(request_id) < REQUEST_ID_CHARS:
        request_id = _full_id(client, request_id, failed=failed)
    log, key = _find_log(audit, config)
    call, problem = _from_gateway(client, request_id)
    if call is None and log is not None:
        call = _from_log(log, key, request_id)
    if call is None:
        asked = problem.message if problem else f"The gateway at {client.url} does not know it."
        searched = f"It is not in the audit log {log}." if log else "There is no audit log to search."
        raise CommandError(
            f"Call {request_id} not found. {asked} {searched}",
            "`pactgate explain` lists the last calls; --audit names an audit log.",
            exit_code=1,
        )
    if as_json:
        terminal.say_json(call)
    else:
        _show(call)
    return 0


def _list_calls(client: GatewayClient, *, failed: bool, as_json: bool) -> int:
    rows = _calls(client, failed=failed)
    if as_json:
        terminal.say_json(rows)
    elif not rows:
        terminal.say("No call failed." if failed else "There are no calls yet, or none that you may see.")
    else:
        show_table(CALL_COLUMNS, map(call_cells, rows[:_MAX_SHOWN]))
    return 0


def _calls(client: GatewayClient, *, failed: bool, beginning: str = "") -> list[dict[str, Any]]:
    """The last calls, the newest first. The gateway applies the filter, to all calls that it keeps."""
    terms = ["outcome:!ok"] if failed else []
    return client.rows("calls", wanted=" ".join([*terms, *([f"id:{beginning}*"] if beginning else [])]))


def _full_id(client: GatewayClient, beginning: str, *, failed: bool) -> str:
    """The request id that is meant by its beginning, or by `last`; as it is where the gateway knows none. Raises CommandError."""
    is_last = beginning == _LAST
    if not is_last and not _BEGINNING.fullmatch(beginning):
        return beginning
    found = [str(row.get("requestId")) for row in _calls(client, failed=failed, beginning="" if is_last else beginning)]
    if is_last:
        if not found:
            message = "No call failed." if failed else "There are no calls yet, or none that you may see."
            raise CommandError(message, exit_code=1)
        return found[0]
    if len(found) > 1:
        raise CommandError(f"{beginning} is the beginning of several request ids.", "\n".join(found[:_MAX_SHOWN]))
    return found[0] if found else beginning


def _find_log(file: str | None, config: str | None) -> tuple[Path | None, bytes]:
    try:
        log, key = configured_log(config)
    except CommandError:
        return Path(file) if file is not None else None, b""
    return Path(file) if file is not None else log, key


def _from_gateway(client: GatewayClient, request_id: str) -> tuple[dict[str, Any] | None, GatewayClientError | None]:
    from urllib.parse import quote

    try:
        page = client.get(f"/api/calls/{quote(request_id, safe='')}")
    except GatewayClientError as problem:
        return None, problem
    known = isinstance(page, dict) and request_id in (page.get("requestId"), page.get("traceId"))
    return (page if known else None), None


def _from_log(log: Path, key: bytes, request_id: str) -> dict[str, Any] | None:
    from pactgate.app import build
    from pactgate.audit.call_history import call_trace
    from pactgate.audit.verify import files_of, find_call
    from pactgate.config.model import Config

    try:
        facts = find_call(files_of(log), request_id, key)
    except OSError as error:
        terminal.warning(f"{error.filename} can't be read: {error.strerror}.")
        return None
    if facts is None:
        return None
    gates = [gate.name for gate in build(Config(), lambda event: None).tool_call.gates]
    return call_trace(facts, gates, source=f"audit log {log}")


def _show(call: Mapping[str, Any]) -> None:
    outcome = str(call.get("outcome")).replace("_", " ")
    name = what(call) or "a call"
    terminal.title(f"{name}: {outcome} in {call.get('durationMs', 0):.1f} ms")
    for label, text in call_lines(call):
        if text:
            terminal.item(label, "dim", text, width=_LABEL_CHARS)


def call_lines(call: Mapping[str, Any]) -> list[tuple[str, str]]:
    party = str(call.get("party") or "")
    return [
        ("request id", f"{call.get('requestId')}, {call.get('time')}"),
        ("source", str(call.get("source"))),
        ("client", _join(call.get("subject"), call.get("client"), call.get("peer"), _protocol(call.get("version")))),
        ("tool", "" if call.get("method") else _tool(call)),
        ("method", _method(call)),
        ("requested name", str(call.get("requested") or "")),
        ("arguments", terminal.compact(call["arguments"]) if call.get("arguments") is not None else ""),
        ("permission", _permission(call)),
        ("time", _times(call)),
        ("trace id", str(call.get("traceId") or "")),
        ("passed", _gates(call, "passed")),
        ("skipped", _gates(call, "skipped")),
        ("stopped at", _gates(call, "stopped")),
        ("not reached", _gates(call, "not reached")),
        ("cache", "a cached response; the server was not called" if call.get("cached") else ""),
        ("server", _protocol(call.get("revision"))),
        ("output", _output(call)),
        ("effects", _effects(call)),
        ("error", str(call.get("code") or "")),
        ("executed", executed(call.get("verdict")) if call.get("code") is not None else ""),
        ("responsible", _RESPONSIBLE.get(party, party)),
        ("message", str(call.get("message") or "")),
        ("next", str(call.get("next") or "")),
    ]


def _protocol(version: Any) -> str:
    return f"protocol version {version}" if version else ""


def _method(call: Mapping[str, Any]) -> str:
    """Of a request that is not a tool call."""
    if not call.get("method"):
        return ""
    return f"{call['method']} on {call['server']}" if call.get("server") else str(call["method"])


def _tool(call: Mapping[str, Any]) -> str:
    if not call.get("tool"):
        return "unknown"
    via = f"via {call['via']}" if call.get("via") else ""
    return _join(f"{call['tool']} on {call.get('server')}", call.get("category"), via)


def _permission(call: Mapping[str, Any]) -> str:
    if not call.get("policyRevision"):
        return ""
    place = f" ({call['ruleAt']})" if call.get("ruleAt") else ""
    rule = f"rule {call['rule']}{place}" if call.get("rule") else "no rule allows it"
    return f"{rule}, policy revision {call['policyRevision']}"


def _times(call: Mapping[str, Any]) -> str:
    """Where the time went, the longest first."""
    times = call.get("times")
    if not isinstance(times, dict):
        return ""
    parts = sorted(times.items(), key=lambda part: -part[1])
    return ", ".join(f"{_milliseconds(ms)} {TIME_TEXTS.get(name) or _waited_to(name)}" for name, ms in parts)


def _milliseconds(ms: float) -> str:
    return f"{ms:,.0f} ms" if ms >= 10 else f"{ms:.1f} ms"


def _waited_to(gate: str) -> str:
    return f"waiting to {gate_text(gate, is_past=False)}"


def _gates(call: Mapping[str, Any], state: str) -> str:
    gates = [gate for gate in call.get("gates", ()) if gate.get("state") == state]
    return ", ".join(str(gate.get("text") or gate.get("gate")) for gate in gates)


def _output(call: Mapping[str, Any]) -> str:
    validated = "valid against the tool's output schema" if call.get("validated") else ""
    errors = [str(one.get("message")) for one in call.get("outputErrors") or () if isinstance(one, dict)]
    if errors:
        validated = f"passed on although it does not fit (outputValidation: warn): {'; '.join(errors[:_MAX_SHOWN])}"
    return _join(validated, "truncated to the size limit" if call.get("truncated") else "")


def _effects(call: Mapping[str, Any]) -> str:
    operations = [one for one in call.get("operations") or () if isinstance(one, dict)]
    seen = "; ".join(f"{one.get('kind')} {one.get('target', '')}".strip() for one in operations[:_MAX_SHOWN])
    undeclared = "; ".join(str(one) for one in call.get("violations") or ())
    return _join(
        call.get("effects"), f"seen: {seen}" if seen else "", f"undeclared: {undeclared}" if undeclared else ""
    )


def _join(*parts: Any) -> str:
    return ", ".join(str(part) for part in parts if part)
