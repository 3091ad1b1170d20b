"""`pactgate probe`: call a tool twice with the same arguments and say whether the answers are the same.

For tools that are declared idempotent and destroy nothing, because a probe that does harm is none; `--yes` is for whoever knows better.
Exit codes: 0 the same, 1 different or failed, 2 refused or wrong invocation. Enforces the probe of S2/MCP-004.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any, Final

from pactgate.cli import terminal
from pactgate.cli.call import find_tool, read_arguments
from pactgate.cli.gateway_client import GatewayClient

_COMPARED: Final = ("content", "structuredContent", "isError")
_SHOWN_DIFFERENCES: Final = 20
_SHOWN_CHARS: Final = 80

Difference = tuple[str, Any, Any]
ABSENT: Final = object()


def probe(
    client: GatewayClient,
    name: str,
    words: Iterable[str],
    *,
    server: str | None = None,
    args: str | None = None,
    is_sure: bool = False,
    as_json: bool = False,
) -> int:
    tool = find_tool(client.get("/api/tools"), name, server)
    if tool is None:
        terminal.problem(f"There is no tool {name!r}, or several have that name.", "`pactgate tools` lists them.")
        return 2
    reason = None if is_sure else _why_not(tool)
    if reason is not None:
        terminal.problem(
            f"{name} is not probed: {reason}.", "Calling it twice may do harm. --yes does it all the same."
        )
        return 2
    schema = tool.get("inputSchema")
    arguments = read_arguments(words, args, schema if isinstance(schema, dict) else {})
    answers = []
    for turn in ("first", "second"):
        answer = client.call(name, arguments, server=server)
        if "error" in answer:
            terminal.problem(f"The {turn} call failed: {answer['error'].get('message')}")
            return 1
        answers.append({key: answer["result"][key] for key in _COMPARED if key in answer["result"]})
    return _judge(name, list(differences(answers[0], answers[1])), as_json=as_json)


def differences(one: Any, other: Any, at: str = "") -> Iterator[Difference]:
    """What differs between two answers, each with its place as a JSON pointer."""
    if isinstance(one, dict) and isinstance(other, dict):
        for key in [*one, *(key for key in other if key not in one)]:
            place = f"{at}/{str(key).replace('~', '~0').replace('/', '~1')}"
            yield from differences(one.get(key, ABSENT), other.get(key, ABSENT), place)
    elif isinstance(one, list) and isinstance(other, list):
        for index in range(max(len(one), len(other))):
            first, second = (items[index] if index < len(items) else ABSENT for items in (one, other))
            yield from differences(first, second, f"{at}/{index}")
    elif type(one) is not type(other) or one != other:
        yield at, one, other


def _why_not(tool: dict[str, Any]) -> str | None:
    if tool.get("isIdempotent") is not True:
        return (
            "it is declared not to be idempotent"
            if tool.get("isIdempotent") is False
            else "nobody declared it idempotent"
        )
    return "it may destroy something" if tool.get("isDestructive") is not False else None


def _judge(name: str, found: list[Difference], *, as_json: bool) -> int:
    if as_json:
        rows = [{"path": at, "first": _plain(one), "second": _plain(other)} for at, one, other in found]
        terminal.say_json({"tool": name, "equal": not found, "differences": rows})
    elif not found:
        terminal.say(f"{name} gave the same answer twice.")
    else:
        terminal.say(f"{name} gave two different answers:")
        for at, one, other in found[:_SHOWN_DIFFERENCES]:
            terminal.item("differ", "yellow", f"{at or '/'}: {_brief(one)} then {_brief(other)}")
        if len(found) > _SHOWN_DIFFERENCES:
            terminal.say(f"  and {len(found) - _SHOWN_DIFFERENCES} more")
    return 1 if found else 0


def _plain(value: Any) -> Any:
    return None if value is ABSENT else value


def _brief(value: Any) -> str:
    if value is ABSENT:
        return "nothing"
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _SHOWN_CHARS else f"{text[:_SHOWN_CHARS]}..."
