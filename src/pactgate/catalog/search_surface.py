"""The search surface of a view: three tools instead of many, for clients that can't carry hundreds of definitions.

`find_tools` and `describe_tools` are answered here, from the tools that the caller sees in the view; `call_tool` becomes a call of the tool
that it names before anything is counted, as `tool_invoke` does. The list is the same for every client of the view, whatever it has asked
before. Must not: show what is not in the view.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from msgspec import Raw

from pactgate.config.value_checks import OWN_SERVER_ID
from pactgate.core.contract import CATEGORIES
from pactgate.core.values import Tool, Traits
from pactgate.policy.schema.validation import Schema, compile_schema
from pactgate.protocol import messages
from pactgate.protocol.messages import encode_json

if TYPE_CHECKING:
    from pactgate.catalog.tool_search import ToolSearch

FIND: Final = "find_tools"
DESCRIBE: Final = "describe_tools"
CALL: Final = "call_tool"
CALL_READ: Final = "call_read_tool"
CALL_WRITE: Final = "call_write_tool"
CALLS: Final = frozenset({CALL, CALL_READ, CALL_WRITE})
MAX_FOUND: Final = 20
_FOUND: Final = 5
_DESCRIBED: Final = 20
_TEXT_CHARS: Final = 160
_TARGET: Final = {
    "type": "object",
    "properties": {
        "name": {
            "type": "string",
            "minLength": 1,
            "maxLength": 512,
            "description": "Name of the tool, as find_tools gives it.",
        },
        "arguments": {"type": "object", "description": "Arguments of the tool."},
    },
    "required": ["name"],
    "additionalProperties": False,
}
_DECLARED: Final[dict[str, tuple[str, dict[str, Any]]]] = {
    FIND: (
        "Find tools by what they do. Returns names with their arguments, the best first; use it before you say that something "
        "can't be done.",
        {
            "type": "object",
            "properties": {
                "query": {
                    "type": "string",
                    "minLength": 1,
                    "maxLength": 500,
                    "description": "What you want to do, in a few words.",
                },
                "limit": {
                    "type": "integer",
                    "minimum": 1,
                    "maximum": MAX_FOUND,
                    "description": f"How many tools. Default {_FOUND}.",
                },
                "server": {"type": "string", "maxLength": 50, "description": "Only tools of this server."},
                "category": {"enum": list(CATEGORIES), "description": "Only tools of this category."},
            },
            "required": ["query"],
            "additionalProperties": False,
        },
    ),
    DESCRIBE: (
        "Show the whole definitions of tools, with the schemas of their arguments.",
        {
            "type": "object",
            "properties": {
                "names": {
                    "type": "array",
                    "items": {"type": "string", "maxLength": 512},
                    "minItems": 1,
                    "maxItems": _DESCRIBED,
                    "description": "Names as find_tools gives them.",
                }
            },
            "required": ["names"],
            "additionalProperties": False,
        },
    ),
    CALL: ("Call a tool that find_tools has found.", _TARGET),
    CALL_READ: ("Call a tool that only reads. Others are refused.", _TARGET),
    CALL_WRITE: ("Call a tool that may change something.", _TARGET),
}
_READS: Final = frozenset({FIND, DESCRIBE, CALL_READ})


@cache
def search_tools(*, splits_calls: bool) -> tuple[Tool, ...]:
    """The tools of the surface."""
    return tuple(map(_tool, (FIND, DESCRIBE, *((CALL_READ, CALL_WRITE) if splits_calls else (CALL,)))))


def is_search_tool(tool: Tool) -> bool:
    return tool.server == OWN_SERVER_ID and tool.name in _DECLARED


class SearchSurface:
    """Answers for the tools of one view and one class of callers, without those that only an app calls (MCP Apps).

    The index is made when somebody first searches, which takes 0.1 ms for each tool.
    """

    def __init__(self, tools: Sequence[Tool]) -> None:
        self._tools = tuple(filter(_is_for_models, tools))
        self._index: ToolSearch | None = None

    def is_ready_for(self, name: str) -> bool:
        """Whether `answer` takes no long time."""
        return name != FIND or self._index is not None

    def prepare(self) -> ToolSearch:
        """Make the index, in whatever thread."""
        from pactgate.catalog.tool_search import ToolSearch  # only views that are searched need an index

        self._index = index = ToolSearch(self._tools)
        return index

    def answer(self, name: str, arguments: bytes) -> bytes:
        """The result of `find_tools` or `describe_tools`; the arguments fit the schema."""
        given = messages.value(Raw(arguments))
        text = self._find(**given) if name == FIND else self._describe(given["names"])
        return encode_json({"content": [{"type": "text", "text": text}], "isError": False})

    def _find(self, query: str, limit: int = _FOUND, server: str | None = None, category: str | None = None) -> str:
        index = self._index or self.prepare()
        found = [
            tool
            for tool in index.find(query)
            if server in (None, tool.server) and category in (None, tool.traits.category)
        ]
        lines = [_line(tool) for tool in found[:limit]]
        count = len(self._tools)
        if not lines:
            servers = ", ".join(dict.fromkeys(tool.server for tool in self._tools)) or "none"
            return f"None of {count} tools has these words. Try others. Servers: {servers}."
        return "\n".join([f"{len(lines)} of {count} tools; refine the query, or ask {DESCRIBE}:", *lines])

    def _describe(self, names: Sequence[str]) -> str:
        known = {name: tool for tool in self._tools for name in (tool.full_name, tool.exposed_name)}
        parts = [
            known[name].exposed_definition.decode() if name in known else f"There is no tool {name[:100]!r}."
            for name in names
        ]
        return "\n".join(parts)


def _is_for_models(tool: Tool) -> bool:
    if b'"visibility"' not in tool.definition:
        return True
    held: Any = messages.value(tool.definition)
    for member in ("_meta", "ui", "visibility"):
        held = held.get(member) if isinstance(held, dict) else None
    return not isinstance(held, list) or "model" in held


def _tool(name: str) -> Tool:
    description, schema = _DECLARED[name]
    definition = {
        "name": name,
        "description": description,
        "inputSchema": schema,
        "annotations": {"readOnlyHint": name in _READS, "openWorldHint": name in CALLS},
    }
    data, check = encode_json(definition), compile_schema(encode_json(schema), noun="argument")
    assert isinstance(check, Schema), check
    return Tool(
        server=OWN_SERVER_ID,
        name=name,
        full_name=f"{OWN_SERVER_ID}.{name}",
        exposed_name=name,
        definition=data,
        exposed_definition=data,
        digest="",
        input_check=check,
        traits=Traits(
            category="query", reason="the search surface", rate_class="read", is_known=True, is_read_only=True
        ),
    )


def _line(tool: Tool) -> str:
    """`name(required: type, optional?) - what it does`."""
    definition: dict[str, Any] = messages.value(tool.exposed_definition)
    schema = definition.get("inputSchema")
    properties = schema.get("properties") if isinstance(schema, dict) else None
    required = schema.get("required") if isinstance(schema, dict) else None
    wanted = [name for name in required if isinstance(name, str)] if isinstance(required, list) else []
    typed = [f"{name}: {_type(properties, name)}" for name in wanted]
    has_more = isinstance(properties, dict) and len(properties) > len(wanted)
    text = " ".join(str(definition.get("description") or definition.get("title") or "").split())
    return f"{tool.exposed_name}({', '.join([*typed, *(['...'] if has_more else [])])}) - {text[:_TEXT_CHARS]}"


def _type(properties: Any, name: str) -> str:
    one = properties.get(name) if isinstance(properties, dict) else None
    kind = one.get("type") if isinstance(one, dict) else None
    return kind if isinstance(kind, str) else "any"
