"""What a tool of the demo servers is: its definition, the check of its arguments, its result as text beside structure.

The argument check knows exactly the JSON Schema words the demo's own schemas use, and names every problem at once.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from datetime import date
from typing import Any, NamedTuple, Protocol

from pactgate.demo import rpc

Json = dict[str, Any]


class BadInputError(Exception):
    """The arguments make no sense: told to the caller in a result with `isError`, so that a model can mend its call."""


class Exchange(Protocol):
    """The open request, as a tool sees it."""

    def wait(self, seconds: float) -> bool:
        """Let time pass. True as soon as the caller has cancelled."""

    def progress(self, done: int, total: int, message: str) -> None:
        """Tell the caller how far it is, if it asked to be told."""


class Outcome(NamedTuple):
    text: str
    structured: Json


class Tool(NamedTuple):
    name: str
    title: str
    description: str
    input_schema: Json
    output_schema: Json
    run: Callable[[Json, Exchange], Outcome]
    writes: bool = False
    takes_time: bool = False

    def definition(self) -> Json:
        return {
            "name": self.name,
            "title": self.title,
            "description": self.description,
            "inputSchema": self.input_schema,
            "outputSchema": self.output_schema,
            "annotations": {
                "title": self.title,
                "readOnlyHint": not self.writes,
                "destructiveHint": False,
                "idempotentHint": not self.writes,
                "openWorldHint": False,
            },
        }

    def call(self, arguments: Json, exchange: Exchange) -> Json:
        """The result of a call. Bad input is a result too."""
        try:
            found = list(_problems(self.input_schema, arguments))
            if found:
                raise BadInputError(" ".join(found))
            outcome = self.run(arguments, exchange)
        except BadInputError as problem:
            return {"content": [{"type": "text", "text": str(problem)}], "isError": True}
        return {
            "content": [
                {"type": "text", "text": outcome.text},
                {"type": "text", "text": json.dumps(outcome.structured, ensure_ascii=False)},
            ],
            "structuredContent": outcome.structured,
            "isError": False,
        }


class Toolbox:
    """The tools of one server, by name."""

    def __init__(self, tools: Iterable[Tool]) -> None:
        self._tools = {tool.name: tool for tool in tools}

    def definitions(self) -> list[Json]:
        return [tool.definition() for tool in self._tools.values()]

    def takes_time(self, params: Json) -> bool:
        name = params.get("name")
        return isinstance(name, str) and name in self._tools and self._tools[name].takes_time

    def call(self, params: Json, exchange: Exchange) -> Json:
        name, arguments = params.get("name"), params.get("arguments", {})
        tool = self._tools.get(name) if isinstance(name, str) else None
        if tool is None:
            known = ", ".join(self._tools)
            raise rpc.RpcError(rpc.INVALID_PARAMS, f"There is no tool {str(name)[:64]!r}; there are: {known}.")
        if not isinstance(arguments, dict):
            raise rpc.RpcError(rpc.INVALID_PARAMS, "The arguments must be an object.")
        return tool.call(arguments, exchange)


def object_schema(required: list[str], **properties: Json) -> Json:
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


_TYPES: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "string": ("a string", lambda value: isinstance(value, str)),
    "integer": ("a whole number", lambda value: isinstance(value, int) and not isinstance(value, bool)),
    "number": ("a number", lambda value: isinstance(value, int | float) and not isinstance(value, bool)),
    "array": ("an array of strings", lambda value: isinstance(value, list) and all(isinstance(v, str) for v in value)),
}


def _problems(schema: Json, arguments: Json) -> Iterator[str]:
    properties: Json = schema["properties"]
    for name in schema["required"]:
        if name not in arguments:
            yield f"The argument {name!r} is missing."
    for name, value in arguments.items():
        if name not in properties:
            yield f"There is no argument {name[:64]!r}; there are: {', '.join(properties)}."
        else:
            problem = _problem(properties[name], value)
            if problem:
                yield f"The argument {name!r} must be {problem}."


def _problem(schema: Json, value: Any) -> str | None:
    kind, fits = _TYPES[schema["type"]]
    if not fits(value):
        return kind
    if schema.get("format") == "date" and not is_date(value):
        return "a date that exists, written YYYY-MM-DD"
    size = value if isinstance(value, int | float) else len(value)
    words = " characters long" if isinstance(value, str) else " entries long" if isinstance(value, list) else ""
    low = schema.get("minimum", schema.get("minLength"))
    high = schema.get("maximum", schema.get("maxLength", schema.get("maxItems")))
    if low is not None and size < low:
        return f"at least {low}{words}"
    if high is not None and size > high:
        return f"at most {high}{words}"
    return None


def is_date(text: str) -> bool:
    try:
        return date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False
