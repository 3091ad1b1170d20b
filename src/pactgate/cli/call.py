"""`pactgate call`: arguments from the command line, one call, and its answer in a form a person can read."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping
from typing import Any, Final

from pactgate.cli import terminal
from pactgate.cli.gateway_client import GatewayClient

_ENVELOPE_KEY: Final = "dev.pactgate/envelope"


class BadArgumentsError(Exception):
    """The arguments can't be read: a wrong invocation."""


def call(
    client: GatewayClient,
    name: str,
    words: Iterable[str],
    *,
    server: str | None = None,
    args: str | None = None,
    timeout_ms: int | None = None,
    as_json: bool = False,
) -> int:
    words = list(words)
    tool = find_tool(client.get("/api/tools"), name, server)
    schema = tool.get("inputSchema") if tool else None
    arguments = read_arguments(words, args, schema if isinstance(schema, dict) else {})
    from pactgate.protocol.headers import header_params, mirror

    params = header_params(schema) if schema else ()
    mirrored = () if isinstance(params, str) else mirror(params, arguments)
    with terminal.spinner(f"waiting for {name}") as turning:
        answer = client.call(
            name,
            arguments,
            server=server,
            mirrored=mirrored,
            timeout_s=timeout_ms / 1000 if timeout_ms else None,
            on_progress=(lambda progress: turning.tell(_told(name, progress))) if turning else None,
        )
    if as_json:
        terminal.say_json(answer["result"] if "result" in answer else {"error": answer["error"]})
        return 1 if "error" in answer or answer["result"].get("isError") else 0
    if "error" in answer:
        return _show_error(answer["error"])
    return _show_result(answer["result"])


def read_arguments(words: Iterable[str], args: str | None, schema: Mapping[str, Any]) -> dict[str, Any]:
    """`k=v` is text, unless the tool's schema wants something else for `k`; `k:=json` is JSON; both go over `--args`."""
    arguments: dict[str, Any] = {}
    if args is not None:
        base = _json(args, "--args")
        if not isinstance(base, dict):
            raise BadArgumentsError('--args must be a JSON object, for example {"date": "2026-11-16"}.')
        arguments.update(base)
    properties = schema.get("properties")
    for word in words:
        key, separator, text = word.partition("=")
        if not separator or not key or key == ":":
            raise BadArgumentsError(f"{word!r} is not an argument: write name=value, or name:=json.")
        if key.endswith(":"):
            arguments[key[:-1]] = _json(text, key[:-1])
        else:
            wanted = properties.get(key) if isinstance(properties, dict) else None
            arguments[key] = text if _takes_text(wanted) else _json(text, key, hint=_wanted(wanted))
    try:
        json.dumps(arguments, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise BadArgumentsError("The arguments are not valid Unicode text.") from None
    return arguments


def _takes_text(schema: Any) -> bool:
    """Whether a value given as plain text can stay text: the schema says so, or says nothing."""
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
        raise BadArgumentsError(f"The value of {where} is not JSON: {text!r}.{hint}") from None


def _refuse_constant(name: str) -> Any:
    raise ValueError(name)


def find_tool(page: Any, name: str, server: str | None) -> dict[str, Any] | None:
    """The tool meant, as far as that can be told here; the gateway decides."""
    rows = page.get("tools") if isinstance(page, dict) else page
    rows = [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []
    if server is None:
        exact = [row for row in rows if name in (row.get("fullName"), row.get("exposedName"))]
        found = exact or [row for row in rows if row.get("toolName") == name]
    else:
        found = [row for row in rows if (row.get("serverId"), row.get("toolName")) == (server, name)]
    return found[0] if len(found) == 1 else None


def _told(name: str, progress: Mapping[str, Any]) -> str:
    done, total = progress.get("progress"), progress.get("total")
    how_far = f"{done} of {total}" if total is not None else f"{done}"
    message = progress.get("message")
    return f"{name}: {how_far}, {message}" if message else f"{name}: {how_far}"


def _show_result(result: dict[str, Any]) -> int:
    structured = result.get("structuredContent")
    content = result.get("content")
    blocks = content if isinstance(content, list) else []
    shown = [_block(block) for block in blocks if structured is None or not _repeats(block, structured)]
    if structured is not None and not any(structured == {"result": text} for text in shown):
        shown.append(_pretty(structured))
    for text in shown:
        terminal.say(text)
    meta = result.get("_meta")
    envelope = meta.get(_ENVELOPE_KEY) if isinstance(meta, dict) else None
    known = envelope if isinstance(envelope, dict) else {}
    _show_violations(known)
    if not result.get("isError"):
        return 0
    failure = known.get("failure")
    facts = {**(failure if isinstance(failure, dict) else {}), "requestId": known.get("requestId")}
    is_its_own = facts.get("failure_mode") in (None, "tool_error")
    _show_failure("The tool says that it failed." if is_its_own else "The call failed.", facts)
    return 1


def _show_violations(envelope: dict[str, Any]) -> None:
    found = envelope.get("violations")
    told = [_violation(one) for one in found if isinstance(one, dict)] if isinstance(found, list) else []
    if told:
        sys.stdout.flush()
        terminal.warning(f"{envelope.get('tool')} did what it does not declare: {', '.join(told)}")


def _violation(one: dict[str, Any]) -> str:
    if "kind" not in one:
        return f"{one.get('more')} more"
    return f"{one['kind']} {one.get('target', '')}" + (" (refused)" if one.get("refused") else "")


def _show_error(error: dict[str, Any]) -> int:
    _show_failure(str(error.get("message")), error.get("data"))
    return 1


def _show_failure(message: str, facts: Any) -> None:
    """The failure record in words: who, what is known of its effects, what to try instead."""
    known = facts if isinstance(facts, dict) else {}
    lines = [f"  {label}: {_in_words(known[key])}" for key, label in _SHOWN_FACTS.items() if known.get(key) is not None]
    candidates = known.get("candidates")
    if isinstance(candidates, list) and candidates:
        lines.append(f"  did you mean: {', '.join(map(str, candidates))}")
    sys.stdout.flush()
    terminal.problem(message, "\n".join(lines))


_SHOWN_FACTS: Final = {
    "code": "code",
    "server": "server",
    "verdict": "the action",
    "retryable": "worth a retry",
    "attempts": "attempts",
    "requestId": "request",
}


def _in_words(fact: Any) -> str:
    if isinstance(fact, bool):
        return "yes" if fact else "no"
    return str(fact).replace("_", " ") if fact in ("did_not_run", "may_have_run", "ran") else str(fact)


def _block(block: Any) -> str:
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
