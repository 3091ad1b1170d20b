"""OpenAPI documents on the command line: the tools they make, and the operations that are skipped, with the reasons.

Without `--live` only files are read and nothing is contacted. Must not: import the mapping unless there is a document.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pactgate.cli import terminal
from pactgate.cli.table import Column, show_table
from pactgate.config.model import Config
from pactgate.config.sections.openapi import is_url

if TYPE_CHECKING:
    from pactgate.upstreams.openapi.mapping import MappedDocument

_SHOWN_TOOLS: Final = 40
_SHOWN_REASONS: Final = 15
_MANY_BYTES: Final = 100_000
"""About 25,000 tokens, which a model reads before the question."""


def read_documents(config: Config) -> dict[str, MappedDocument | str]:
    """The mapping of each server's document by the server's id, or the reason why the document can't be used."""
    described = [one for one in config.servers.values() if one.enabled and one.openapi and not is_url(one.openapi)]
    if not described:
        return {}
    from pactgate.core.failures import GatewayFailure
    from pactgate.upstreams.openapi.document_text import UnreadableDocumentError
    from pactgate.upstreams.openapi.server import described_api
    from pactgate.upstreams.openapi.source import map_file

    found: dict[str, MappedDocument | str] = {}
    for server in described:
        try:
            mapped = map_file(server)
            described_api(server, mapped)
            found[server.id] = mapped
        except UnreadableDocumentError as problem:
            found[server.id] = f"its OpenAPI document {server.openapi} {problem.why}"
        except GatewayFailure as failure:
            found[server.id] = failure.message
    return found


def show_documents(found: dict[str, MappedDocument | str]) -> None:
    for server, mapped in found.items():
        if isinstance(mapped, str):
            terminal.item("error", "red", f"{server}: {mapped}")
        else:
            terminal.say(f"{server}: {summary(mapped)}")
            show_skipped(mapped)


def documents_report(found: dict[str, MappedDocument | str]) -> dict[str, Any]:
    rows = [
        {"serverId": server, **({"problem": mapped} if isinstance(mapped, str) else as_dict(mapped))}
        for server, mapped in found.items()
    ]
    return {"documents": rows} if rows else {}


def show_tools(mapped: MappedDocument) -> None:
    columns = (Column("TOOL"), Column("METHOD"), Column("PATH"), Column("DESCRIPTION", is_long=True, from_width=100))
    shown = mapped.endpoints[:_SHOWN_TOOLS]
    if not shown:
        return
    show_table(columns, ([one.name, one.method, one.path, one.title or one.description] for one in shown))
    if len(mapped.endpoints) > len(shown):
        terminal.say(f"… and {len(mapped.endpoints) - len(shown)} more; --json lists them all.")


def show_skipped(mapped: MappedDocument) -> None:
    """Print the skipped operations by reason, since many share one, and advice where there are too many tools."""
    from pactgate.upstreams.openapi.mapping import by_reason, some_of

    grouped = by_reason(mapped.left_out)
    for reason, operations in list(grouped.items())[:_SHOWN_REASONS]:
        terminal.item("skipped", "yellow", f"{some_of(operations)}: {reason}")
    if len(grouped) > _SHOWN_REASONS:
        terminal.say(f"… and {len(grouped) - _SHOWN_REASONS} more reasons; --json lists them all.")
    if (text := _size_advice(mapped)) is not None:
        terminal.say(text)


def summary(mapped: MappedDocument) -> str:
    count = len(mapped.endpoints)
    parts = [f"{count} tool{'s' * (count != 1)}"]
    if mapped.left_out:
        parts.append(f"{len(mapped.left_out)} skipped")
    if mapped.not_chosen:
        parts.append(f"{mapped.not_chosen} not included")
    return f"{mapped.title} {mapped.version}".strip() + f": {', '.join(parts)}."


def _size_advice(mapped: MappedDocument) -> str | None:
    """What to do where the tools are too many for a model to read."""
    from pactgate.upstreams.rest.tool_definition import definition

    size = sum(len(definition(endpoint)) for endpoint in mapped.endpoints)
    if size < _MANY_BYTES:
        return None
    return (
        f"The tool definitions have {size // 1000} kB, and every client passes them to its model. "
        'Choose some: "include": { "tags": […], "paths": […], "methods": ["GET"] }.'
    )


def as_dict(mapped: MappedDocument) -> dict[str, Any]:
    return {
        "title": mapped.title,
        "version": mapped.version,
        "baseUrl": mapped.base_url,
        "tools": [
            {"name": one.name, "method": one.method, "path": one.path, "description": one.description}
            for one in mapped.endpoints
        ],
        "leftOut": [{"operation": one.operation, "reason": one.reason} for one in mapped.left_out],
        "notChosen": mapped.not_chosen,
    }
