"""The tools of the built-in server `pactgate` as they are declared: schemas, annotations, contracts. Data, and nothing that runs.

Every input schema is closed. The contract beside each definition says category, idempotency, effects and error codes, as any tool's does.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from msgspec import Raw

from pactgate.config.change import SERVER_SETTABLE, SETTABLE
from pactgate.core.failures import RETRYABLE_ERRORS, ErrorCode
from pactgate.pipeline.tool_invoke import TOOL_INVOKE
from pactgate.protocol.messages import encode_json

CONTRACT_KEY: Final = "dev.pactgate/contract"
MAX_PAGE: Final = 200
DEFAULT_PAGE: Final = 50
_MAX_NAME: Final = 512
_LONGEST_CALL_MS: Final = 86_400_000

Schema = dict[str, Any]

_TEXT: Final[Schema] = {"type": "string"}
_FLAG: Final[Schema] = {"type": "boolean"}
_COUNT: Final[Schema] = {"type": "integer", "minimum": 0}
_ANYTHING: Final[Schema] = {}
_PATH: Final[Schema] = {
    "type": "string",
    "minLength": 1,
    "maxLength": 500,
    "description": 'A setting, as limits.maxArraySize or rateLimits.tools["files.*"].rpm.',
}
_SERVER_ID: Final[Schema] = {"type": "string", "minLength": 1, "maxLength": 50, "description": "Id of a server."}
_PERSIST: Final[Schema] = {
    "type": "boolean",
    "description": "Also write it to the configuration file. Otherwise it lasts until the file is read again.",
}
_PAGE: Final[Schema] = {
    "limit": {"type": "integer", "minimum": 1, "maximum": MAX_PAGE, "description": f"Rows; {DEFAULT_PAGE} by default."},
    "offset": {"type": "integer", "minimum": 0, "maximum": 10_000_000, "description": "Rows to leave out first."},
}
_PAGED: Final[Schema] = {"total": _COUNT, "limit": _COUNT, "offset": _COUNT, "hasMore": _FLAG}
_ROWS: Final[Schema] = {"type": "array", "items": {"type": "object"}}
_NAMES: Final[Schema] = {"type": "array", "items": _TEXT}


class Declared(NamedTuple):
    """One tool. `required` are members of the input; of an output all are."""

    name: str
    title: str
    description: str
    category: str
    input: Schema
    output: Schema | None
    required: tuple[str, ...] = ()
    is_destructive: bool = False
    is_idempotent: bool = True
    effects: tuple[str, ...] = ()
    codes: tuple[tuple[ErrorCode, str], ...] = ()

    def definition(self) -> Raw:
        is_read_only = self.category in ("query", "scan")
        facts: dict[str, Any] = {
            "name": self.name,
            "title": self.title,
            "description": self.description,
            "inputSchema": _closed(self.input, self.required),
            "annotations": {
                "readOnlyHint": is_read_only,
                "destructiveHint": self.is_destructive,
                "idempotentHint": self.is_idempotent,
                "openWorldHint": False,
            },
            "_meta": {
                CONTRACT_KEY: {
                    "category": self.category,
                    "idempotent": self.is_idempotent,
                    "effects": list(self.effects),
                    "errorCodes": [
                        {
                            "code": code.value,
                            "description": why,
                            "retryable": self.is_idempotent and code in RETRYABLE_ERRORS,
                        }
                        for code, why in self.codes
                    ],
                }
            },
        }
        if self.output is not None:
            facts["outputSchema"] = _closed(self.output, tuple(self.output))
        return Raw(encode_json(facts))


def _closed(properties: Schema, required: tuple[str, ...]) -> Schema:
    schema: Schema = {"type": "object", "properties": properties, "additionalProperties": False}
    return {**schema, "required": list(required)} if required else schema


_NO_SETTING: Final = (ErrorCode.NOT_FOUND, "There is no such setting.")
_NO_SERVER: Final = (ErrorCode.NOT_FOUND, "There is no such server.")
_BAD_VALUE: Final = (ErrorCode.INVALID_INPUT, "The value can't be used; every problem is listed, nothing is changed.")
_NOT_SETTABLE: Final = (ErrorCode.PERMISSION_DENIED, "The setting stands in the operator's file alone.")
_CONFLICT: Final = (ErrorCode.CONFLICT, "The configuration is not at the expected revision.")
_UNDONE: Final = (ErrorCode.OPERATION_FAILED, "The change was taken back; the message says why.")
_TOGGLED: Final[Schema] = {
    "serverId": _TEXT,
    "wasEnabled": _FLAG,
    "enabled": _FLAG,
    "status": _TEXT,
    "revision": _TEXT,
    "persisted": _FLAG,
}

DECLARED: Final = (
    Declared(
        "config_get",
        "Get a setting",
        "One setting of the running gateway, or a whole section. SIDE EFFECTS: none.",
        "query",
        {"path": _PATH},
        {"path": _TEXT, "value": _ANYTHING, "settable": _FLAG, "unwritten": _FLAG, "revision": _TEXT},
        required=("path",),
        codes=(_NO_SETTING,),
    ),
    Declared(
        "config_set",
        "Change a setting",
        f"Change one setting of the running gateway at once: {', '.join(SETTABLE)}, and of a server "
        f"{', '.join(SERVER_SETTABLE)}. Checked whole; with expectedRevision only if nobody changed anything meanwhile. "
        "SIDE EFFECTS: the gateway's settings, and its configuration file with persist.",
        "mutation",
        {
            "path": _PATH,
            "value": {"description": "The new value; null takes the setting back to its default."},
            "expectedRevision": {"type": "string", "maxLength": 64, "description": "Change only this revision."},
            "persist": _PERSIST,
            "dryRun": {"type": "boolean", "description": "Only check the change, and say what it would do."},
        },
        {
            "path": _TEXT,
            "oldValue": _ANYTHING,
            "newValue": _ANYTHING,
            "revision": _TEXT,
            "persisted": _FLAG,
            "applied": _FLAG,
            "needsRestart": _FLAG,
        },
        required=("path", "value"),
        is_destructive=True,
        effects=("state", "filesystem.write"),
        codes=(_NO_SETTING, _BAD_VALUE, _NOT_SETTABLE, _CONFLICT, _UNDONE),
    ),
    Declared(
        "config_show",
        "Show the configuration",
        "The configuration without secrets and without what servers are made of. Scope: merged (in force), file (as the file was "
        "last read), changes (only what was changed since and not written). Origins: where a setting comes from that is not the "
        "default. SIDE EFFECTS: none.",
        "query",
        {"scope": {"enum": ["merged", "file", "changes"]}},
        {
            "scope": _TEXT,
            "config": {"type": "object"},
            "unwritten": _NAMES,
            "origins": {"type": "object"},
            "settable": _NAMES,
            "revision": _TEXT,
        },
    ),
    Declared(
        "servers_list",
        "List the servers",
        "The servers behind the gateway and how they are. SIDE EFFECTS: none.",
        "query",
        {"status": {"enum": ["connected", "disconnected", "connecting", "error", "disabled"]}, **_PAGE},
        {"servers": _ROWS, **_PAGED},
    ),
    Declared(
        "server_enable",
        "Enable a server",
        "Connect a server of the configuration that is disabled. SIDE EFFECTS: starts or calls that server.",
        "mutation",
        {"serverId": _SERVER_ID, "persist": _PERSIST},
        _TOGGLED,
        required=("serverId",),
        effects=("state", "process", "network", "filesystem.write"),
        codes=(_NO_SERVER, _UNDONE),
    ),
    Declared(
        "server_disable",
        "Disable a server",
        "End a server's connection and process; its tools are gone until it is enabled. SIDE EFFECTS: calls to it under way fail.",
        "mutation",
        {"serverId": _SERVER_ID, "persist": _PERSIST},
        _TOGGLED,
        required=("serverId",),
        is_destructive=True,
        effects=("state", "process", "filesystem.write"),
        codes=(_NO_SERVER, _UNDONE),
    ),
    Declared(
        "tools_discover",
        "Discover tools",
        "Ask the servers what they offer; one row each, a failing server among them. SIDE EFFECTS: asks the servers.",
        "scan",
        {
            "serverIds": {"type": "array", "items": _SERVER_ID, "maxItems": 256},
            "forceRefresh": {"type": "boolean", "description": "Ask also where the answer is still believed."},
            "includeDisabled": _FLAG,
        },
        {"serverResults": _ROWS, "totalDurationMs": _COUNT, "discoveredAt": _TEXT},
        effects=("network",),
    ),
    Declared(
        "tools_list",
        "List the tools",
        "The tools behind the gateway with category, time limit and rate limit. SIDE EFFECTS: none.",
        "query",
        {
            "serverId": _SERVER_ID,
            "category": {"enum": ["query", "mutation", "scan", "execution"]},
            "query": {"type": "string", "maxLength": 200, "description": "A part of the name."},
            **_PAGE,
        },
        {"tools": _ROWS, **_PAGED},
    ),
    Declared(
        TOOL_INVOKE,
        "Invoke a tool",
        "Call any tool by its name. Counted, limited, timed and recorded as a call of that tool, whose answer is the answer. "
        "SIDE EFFECTS: those of that tool.",
        "execution",
        {
            "name": {"type": "string", "minLength": 1, "maxLength": _MAX_NAME, "description": "As files.read."},
            "arguments": {"type": "object", "description": "What the tool takes."},
            "timeoutMs": {
                "type": "integer",
                "minimum": 1,
                "maximum": _LONGEST_CALL_MS,
                "description": "A shorter limit.",
            },
        },
        None,
        required=("name",),
        is_destructive=True,
        is_idempotent=False,
        effects=("filesystem.read", "filesystem.write", "network", "process", "state"),
        codes=((ErrorCode.NOT_FOUND, "There is no such tool."),),
    ),
    Declared(
        "explain",
        "Explain a call",
        "What happened to one request, by the id that its answer carries. SIDE EFFECTS: none.",
        "query",
        {"requestId": {"type": "string", "minLength": 1, "maxLength": 100}},
        {"requestId": _TEXT, "story": {"type": "object"}},
        required=("requestId",),
        codes=((ErrorCode.NOT_FOUND, "Nothing is known of that request."),),
    ),
)
