"""Generates the settings page and the JSON Schema from the structs of `model`.

The loader refuses what the schema refuses, and more, such as a variable that is not set. Must not: say anything about a setting
that its field does not say. Enforces D20.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

import msgspec
from msgspec import NODEFAULT, inspect

from pactgate.config.file_access import MAX_SECRET_BYTES
from pactgate.config.load import MAX_FILE_BYTES
from pactgate.config.model import ConfigFile, Sections
from pactgate.config.reader import FORMATS
from pactgate.config.sections.rest import RestSettings
from pactgate.config.server_settings import ServerEntry, ServerSettings

EXAMPLE: Final = """\
{
  // The format of MCP clients, with further settings beside it.
  "mcpServers": {
    "files": {
      "command": "npx",
      "args": ["-y", "@modelcontextprotocol/server-filesystem", "/data"],
      "requestTimeoutMs": 120000
    },
    "crm": {
      "url": "https://crm.example/mcp",
      "headers": { "Authorization": "Bearer ${CRM_TOKEN}" }
    }
  },
  // A proxy with TLS on this machine stands before the gateway.
  "listen": { "port": 7411, "allowedHosts": ["gateway.example"] },
  "auth": {
    "tokens": {
      "ops": { "token": "${PACTGATE_ADMIN_TOKEN}", "roles": ["admin"] },
    },
  },
}
"""
"""Needs the variables CRM_TOKEN and PACTGATE_ADMIN_TOKEN."""

_INTRODUCTION: Final = f"""\
# Settings

One file in JSON, JSONC, YAML or TOML: the one `--config` names, else `pactgate{{{",".join(FORMATS)}}}` in the current folder, else in
`$XDG_CONFIG_HOME/pactgate` (`~/.config/pactgate`). Two of them in one folder are refused. Comments and trailing commas are allowed in JSON,
also in a file named `.json`; YAML is YAML 1.2, without tags and merge keys; the file may have {MAX_FILE_BYTES // 1024} KiB.

The gateway does not start with an invalid file. Every problem is shown at once, with line, column and a suggestion. Unknown keys,
keys given twice and values out of range are problems; a server that can't be reached is not.
Relative paths start at the folder of the file.

`${{NAME}}` and `${{NAME:-default}}` are filled in from the environment in `command`, `args`, `env`, `cwd`, `effects`, `url`, `headers`,
`baseUrl`, `openapi`, `credentials` and tokens. A variable that is not set stops its own server only, or the
gateway if it stands outside of the servers; those of disabled servers are not needed. `${{env:NAME}}` means the same; `$${{` stands
for `${{` itself. `${{file:/run/secrets/x}}` is filled in from a file of at most {MAX_SECRET_BYTES // 1024} KiB, without the
line break at its end; when the file changes, the configuration is reloaded. Values from the environment and from such files, and every
value of `env`, `headers`, `credentials` and `auth.tokens`, are masked in all output of the gateway,
except in what a tool, a resource or a prompt answers: that is passed on as the server wrote it.

A file that every user may write is refused, because it names programs to start. Credentials in a file that every user may read are a
warning, and so are credentials in `args`, which every user sees in the list of processes.

A reload applies `auth`, `listen.allowedHosts` and `listen.allowedOrigins` at once: sessions, streams and calls end whose token, roles,
Host or Origin are no longer valid. To replace a token without a gap, list the old and the new one under `tokens` of their holder,
change the clients, then remove the old one. `pactgate token` makes a token and its digest, which can stand there as `sha256:...`.
"""

_NAMES: Final[dict[type, str]] = {
    **dict.fromkeys((inspect.StructType, inspect.DictType), "object"),
    **dict.fromkeys((inspect.IntType, inspect.FloatType), "number"),
}
_HEAD: Final = "| setting | type | default | range | description |\n|---|---|---|---|---|\n"


def json_schema() -> dict[str, Any]:
    """A JSON Schema (draft 2020-12) for editors."""
    schema = msgspec.json.schema(ConfigFile)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Configuration of Pactgate",
        **schema,
    }


def settings_page() -> str:
    """The reference page, in Markdown."""
    root = inspect.type_info(ConfigFile)
    entry = inspect.type_info(ServerEntry)
    assert isinstance(root, inspect.StructType)
    assert isinstance(entry, inspect.StructType)
    parts = [_INTRODUCTION, f"## Example\n\n```jsonc\n{EXAMPLE}```\n", _servers(root, entry)]
    parts.extend(_tables("mcpServers.<id>", entry))
    for field in root.fields:
        section = _bare(field.type)
        if isinstance(section, inspect.StructType):
            parts.extend(_section(field.encode_name, section))
        elif field.name in Sections.__struct_fields__ and (found := _members(field.encode_name, section)) is not None:
            parts.append(f"## `{field.encode_name}`\n\n{_says(field)}\n")
            parts.extend(_section(*found))
        elif isinstance(section, inspect.DictType) and not isinstance(_bare(section.value_type), inspect.StructType):
            parts.append(f"## `{field.encode_name}`\n\n{_says(field)}\n\nA {_type(section)}, {_range(section)}.\n")
    ignored = "".join(
        f"| `{path}` | {_says(field)} |\n"
        for kind, prefix in ((root, ""), (entry, "mcpServers.<id>."))
        for field in kind.fields
        if _is_ignored(field)
        for path in (prefix + field.encode_name,)
    )
    parts.append(
        "## Accepted and ignored\n\nKeys of client files that have no meaning for a gateway. No other unknown key is accepted.\n\n"
        f"| key | description |\n|---|---|\n{ignored}"
    )
    return "\n".join(parts)


def _servers(root: inspect.StructType, entry: inspect.StructType) -> str:
    said = {field.encode_name: _says(field) for field in root.fields}
    rest = [field for field in entry.fields if field.name in RestSettings.__struct_fields__]
    own = [field for field in entry.fields if field.name in ServerSettings.__struct_fields__ and field not in rest]
    clients = [field for field in entry.fields if field not in [*own, *rest] and not _is_ignored(field)]
    return (
        f"## `mcpServers.<id>`\n\n{said['mcpServers']} `servers`: {said['servers'][0].lower()}{said['servers'][1:]}\n\n"
        f"{_HEAD}{''.join(_row(field) for field in [*own, *clients])}\n"
        f"For a REST API:\n\n{_HEAD}{''.join(map(_row, rest))}"
    )


def _section(name: str, kind: inspect.StructType) -> Iterator[str]:
    rows = (_row(field) for field in kind.fields if not isinstance(_bare(field.type), inspect.StructType))
    yield f"## `{name}`\n\n{' '.join((kind.cls.__doc__ or '').split())}\n\n{_HEAD}{''.join(rows)}"
    yield from _tables(name, kind)


def _tables(name: str, kind: inspect.StructType) -> Iterator[str]:
    """The objects within an object, those of its lists and names included."""
    for field in kind.fields:
        table, path = _bare(field.type), f"{name}.{field.encode_name}"
        found = (path, table) if isinstance(table, inspect.StructType) else _members(path, table)
        if found is not None:
            yield from _section(*found)


def _members(path: str, kind: inspect.Type) -> tuple[str, inspect.StructType] | None:
    """The objects that are the values of a setting, by name or in a list."""
    if isinstance(kind, inspect.DictType):
        path, kind = f"{path}.<name>", _bare(kind.value_type)
    elif isinstance(kind, inspect.VarTupleType):
        path, kind = f"{path}[]", _bare(kind.item_type)
    return (path, kind) if isinstance(kind, inspect.StructType) else None


def _row(field: inspect.Field) -> str:
    kind = _bare(field.type)
    cells = (f"`{field.encode_name}`", _type(kind), _default(field), _range(kind), _says(field))
    return f"| {' | '.join(cells)} |\n"


def _bare(kind: inspect.Type) -> inspect.Type:
    """The type without metadata, and without the None of an optional value."""
    if isinstance(kind, inspect.Metadata):
        return _bare(kind.type)
    if isinstance(kind, inspect.UnionType):
        kinds = [one for one in kind.types if not isinstance(one, inspect.NoneType)]
        return _bare(kinds[0]) if len(kinds) == 1 else kind
    return kind


def _type(kind: inspect.Type) -> str:
    match kind:
        case inspect.LiteralType():
            return ", ".join(f"`{word}`" for word in kind.values)
        case inspect.VarTupleType():
            return f"list of {_plural(_bare(kind.item_type))}"
        case inspect.UnionType():
            kinds = [one for one in kind.types if not isinstance(one, inspect.NoneType)]
            return ", or a ".join(_type(_bare(one)) for one in kinds)
        case inspect.DictType() if not isinstance(_bare(kind.value_type), inspect.StructType | inspect.AnyType):
            member = _bare(kind.value_type)
            return f"object of {_plural(member)}" + (
                f", {_range(member)}" if isinstance(member, inspect.IntType) else ""
            )
        case inspect.BoolType():
            return "`true`, `false`"
    return _NAMES.get(type(kind), "string")


def _plural(kind: inspect.Type) -> str:
    return _type(kind) if isinstance(kind, inspect.LiteralType) else f"{_NAMES.get(type(kind), 'string')}s"


def _range(kind: inspect.Type) -> str:
    match kind:
        case inspect.IntType() | inspect.FloatType():
            return f"{kind.ge} to {kind.le}"
        case inspect.StrType():
            return f"up to {kind.max_length} characters" if kind.max_length else ""
        case inspect.VarTupleType():
            each = _range(_bare(kind.item_type))
            return f"at most {kind.max_length}" + (f", each {each}" if each else "")
        case inspect.UnionType():
            return "".join(_range(_bare(one)) for one in kind.types)
        case inspect.DictType():
            return f"at most {kind.max_length}" if kind.max_length else ""
    return ""


def _default(field: inspect.Field) -> str:
    if field.required:
        return "required"
    if field.default is None:
        return ""
    default = field.default_factory() if field.default is NODEFAULT else field.default
    if isinstance(default, msgspec.Struct):
        return ""  # its own table shows it
    return f"`{json.dumps(default)}`"


def _says(field: inspect.Field) -> str:
    said = field.type.extra_json_schema if isinstance(field.type, inspect.Metadata) else None
    return str((said or {}).get("description", ""))


def _is_ignored(field: inspect.Field) -> bool:
    return isinstance(field.type, inspect.Metadata) and bool((field.type.extra or {}).get("ignored"))
