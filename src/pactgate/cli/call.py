"""`pactgate call`: arguments from the command line, one call, and its result in a form a person can read."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import click

from pactgate.cli import terminal
from pactgate.cli.completions import tool_names
from pactgate.cli.errors import CommandError
from pactgate.cli.gateway_client import GatewayClient
from pactgate.cli.shared_options import CommandWithServer, arguments_option, server_option, with_gateway

_ENVELOPE_KEY: Final = "dev.pactgate/envelope"
_FAILURE_LABELS: Final = {
    "code": "code",
    "server": "server",
    "verdict": "executed",
    "retryable": "retryable",
    "attempts": "attempts",
    "requestId": "request id",
}
_EXECUTED: Final = {"did_not_run": "no", "may_have_run": "unknown", "ran": "yes"}


@click.command(
    cls=CommandWithServer,
    epilog="""\
\b
Examples:
  pactgate call almanac.convert_units value=26.2 from=mi to=km
  pactgate call get_current_time timezone=UTC -- uvx mcp-server-time
""",
)
@click.argument("name", shell_complete=tool_names)
@click.argument("words", metavar="[KEY=VALUE]...", nargs=-1)
@arguments_option
@server_option
@click.option(
    "--timeout-ms", type=click.IntRange(1), metavar="MS", help="Give up, and cancel the call, after this time."
)
@with_gateway
def call(
    client: GatewayClient,
    *,
    name: str,
    words: Sequence[str],
    args: str | None,
    server: str | None,
    timeout_ms: int | None,
    as_json: bool,
) -> int:
    """Call a tool and show its result. The exit code is 1 when the call failed.

    NAME is the tool: almanac__date_facts, almanac.date_facts, or just date_facts.
    KEY=VALUE is an argument; KEY:=JSON gives its value as JSON. After -- comes a server to call without a gateway.
    """
    tool = find_tool(client.rows("tools"), name, server)
    schema = tool.get("inputSchema") if tool else None
    arguments = read_arguments(words, args, schema if isinstance(schema, dict) else {})
    from pactgate.protocol.headers import header_params, mirror

    params = header_params(schema) if schema else ()
    mirrored = () if isinstance(params, str) else mirror(params, arguments)
    is_watched = terminal.is_terminal(sys.stderr)
    with terminal.spinner(f"waiting for {name}") as tell:
        answer = client.call(
            name,
            arguments,
            server=server,
            mirrored=mirrored,
            timeout_s=timeout_ms / 1000 if timeout_ms else None,
            on_progress=(lambda progress: tell(_progress_text(name, progress))) if is_watched else None,
        )
    if as_json:
        terminal.say_json(answer["result"] if "result" in answer else {"error": answer["error"]})
        return 1 if "error" in answer or answer["result"].get("isError") else 0
    if "error" in answer:
        show_failure(str(answer["error"].get("message")), answer["error"].get("data"))
        return 1
    return _show_result(answer["result"])


def executed(verdict: object) -> str:
    """Whether the tool ran, in a user's words."""
    return _EXECUTED.get(str(verdict), "")


def read_arguments(words: Iterable[str], args: str | None, schema: Mapping[str, Any]) -> dict[str, Any]:
    """`k=v` is a string unless the tool's schema wants another type for `k`; `k:=json` is JSON; both override `--args`."""
    arguments: dict[str, Any] = {}
    if args is not None:
        base = _json(args, "--args")
        if not isinstance(base, dict):
            raise CommandError('--args must be a JSON object, for example {"date": "2026-11-16"}.')
        arguments.update(base)
    properties = schema.get("properties")
    for word in words:
        key, separator, text = word.partition("=")
        if not separator or not key or key == ":":
            raise CommandError(f"{word!r} is not an argument: write name=value, or name:=json.")
        if key.endswith(":"):
            arguments[key[:-1]] = _json(text, key[:-1])
        else:
            wanted = properties.get(key) if isinstance(properties, dict) else None
            arguments[key] = text if _takes_text(wanted) else _json(text, key, hint=_wanted(wanted))
    try:
        json.dumps(arguments, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise CommandError("The arguments are not valid Unicode text.") from None
    return arguments


def _takes_text(schema: Any) -> bool:
    """Whether the schema allows a string, or any value."""
    if not isinstance(schema, dict):
        return True
    kinds = schema.get("type")
    if kinds is None:
        choices = schema.get("anyOf") or schema.get("oneOf")
        return any(map(_takes_text, choices)) if isinstance(choices, list) and choices else True
    return "string" in (kinds if isinstance(kinds, list) else [kinds])


def _wanted(schema: Any) -> str:
    kinds = schema.get("type") if isinstance(schema, dict) else None
    words = [str(kind) for kind in kinds] if isinstance(kinds, list) else [str(kinds)] if kinds else []
    return f" The tool wants {' or '.join(words)}." if words else ""


def _json(text: str, where: str, hint: str = "") -> Any:
    try:
        return json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        raise CommandError(f"The value of {where} is not JSON: {text!r}.{hint}") from None


def _refuse_constant(name: str) -> Any:
    raise ValueError(name)


def find_tool(rows: list[dict[str, Any]], name: str, server: str | None) -> dict[str, Any] | None:
    """The tool of that name, if exactly one fits. The gateway resolves the name again."""
    if server is None:
        exact = [row for row in rows if name in (row.get("fullName"), row.get("exposedName"))]
        found = exact or [row for row in rows if row.get("toolName") == name]
    else:
        found = [row for row in rows if (row.get("serverId"), row.get("toolName")) == (server, name)]
    return found[0] if len(found) == 1 else None


def _progress_text(name: str, progress: Mapping[str, Any]) -> str:
    done, total = progress.get("progress"), progress.get("total")
    how_far = f"{done} of {total}" if total is not None else f"{done}"
    message = progress.get("message")
    return f"{name}: {how_far}, {message}" if message else f"{name}: {how_far}"


def _show_result(result: dict[str, Any]) -> int:
    structured = result.get("structuredContent")
    content = result.get("content")
    blocks = content if isinstance(content, list) else []
    shown = [shown_block(block) for block in blocks if structured is None or not _repeats(block, structured)]
    if structured is not None and not any(_is_only(structured, text) for text in shown):
        shown.append(_pretty(structured))
    for text in shown:
        terminal.say_as_it_is(text)
    meta = result.get("_meta")
    envelope = meta.get(_ENVELOPE_KEY) if isinstance(meta, dict) else None
    known = envelope if isinstance(envelope, dict) else {}
    _show_violations(known)
    _show_output_errors(known)
    if not result.get("isError"):
        return 0
    failure = known.get("failure")
    facts = {**(failure if isinstance(failure, dict) else {}), "requestId": known.get("requestId")}
    is_tool_error = facts.get("failure_mode") in (None, "tool_error")
    show_failure("The tool reported an error." if is_tool_error else "The call failed.", facts)
    return 1


def _is_only(structured: Any, text: str) -> bool:
    """Whether structured content is this text in one member, whatever its name."""
    return isinstance(structured, dict) and list(structured.values()) == [text]


def _show_violations(envelope: dict[str, Any]) -> None:
    found = envelope.get("violations")
    if isinstance(found, list) and found:
        texts = [_violation(one) for one in found if isinstance(one, dict)]
        terminal.warning(f"{envelope.get('tool')} did what it does not declare: {', '.join(texts)}")


def _show_output_errors(envelope: dict[str, Any]) -> None:
    found = envelope.get("outputErrors")
    if isinstance(found, list) and found:
        places = "; ".join(str(one.get("message")) for one in found if isinstance(one, dict))
        terminal.warning(f"The response does not fit what {envelope.get('tool')} declares: {places}")


def _violation(one: dict[str, Any]) -> str:
    if "kind" not in one:
        return f"{one.get('more')} more"
    return f"{one['kind']} {one.get('target', '')}" + (" (refused)" if one.get("refused") else "")


def show_failure(message: str, facts: Any) -> None:
    """Print the failure record: the code, whether the tool ran, whether a retry makes sense, similar names."""
    known = facts if isinstance(facts, dict) else {}
    lines = [
        f"  {label}: {_fact_text(known[key])}" for key, label in _FAILURE_LABELS.items() if known.get(key) is not None
    ]
    candidates = known.get("candidates")
    if isinstance(candidates, list) and candidates:
        lines.append(f"  did you mean: {', '.join(map(str, candidates))}")
    terminal.problem(message, "\n".join(lines))


def _fact_text(fact: Any) -> str:
    if isinstance(fact, bool):
        return "yes" if fact else "no"
    return executed(fact) or str(fact)


def shown_block(block: Any) -> str:
    if not isinstance(block, dict):
        return _pretty(block)
    kind = block.get("type")
    if kind == "text" and isinstance(block.get("text"), str):
        return str(block["text"])
    if kind in ("image", "audio"):
        size = len(str(block.get("data") or "")) * 3 // 4
        return f"[{kind}, {block.get('mimeType')}, about {size} bytes; --json shows it]"
    if kind == "resource_link":
        return f"[link] {block.get('name')}: {block.get('uri')}"
    resource = block.get("resource")
    if kind == "resource" and isinstance(resource, dict) and isinstance(resource.get("text"), str):
        return f"[{resource.get('uri')}]\n{resource['text']}"
    return _pretty(block)


def _repeats(block: Any, structured: Any) -> bool:
    """Servers repeat structured content as JSON text for older clients; once is enough for a person."""
    if not isinstance(block, dict) or block.get("type") != "text":
        return False
    try:
        return bool(json.loads(block["text"]) == structured)
    except (KeyError, TypeError, ValueError, RecursionError):
        return False


def _pretty(value: Any) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False)
