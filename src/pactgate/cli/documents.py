"""What an OpenAPI document becomes, shown to a person: the tools, and what was left out with its reasons.

Reasons are counted, because a large document leaves out many operations for few of them. Text of the document goes through `console`.
"""

from __future__ import annotations

from typing import Any, Final

from pactgate.cli import terminal
from pactgate.cli.table import Column, show_table
from pactgate.upstreams.openapi.mapping import LeftOut, Mapped, by_reason, some_of
from pactgate.upstreams.rest.tool_definition import definition

_SHOWN_TOOLS: Final = 40
_SHOWN_REASONS: Final = 15
_MANY_BYTES: Final = 100_000
"""About 25 000 tokens: what a model reads before it reads the question."""


def show_tools(mapped: Mapped) -> None:
    columns = (Column("TOOL"), Column("METHOD"), Column("PATH"), Column("DESCRIPTION", is_long=True, from_width=100))
    shown = mapped.endpoints[:_SHOWN_TOOLS]
    if not shown:
        return
    show_table(columns, ([one.name, one.method, one.path, one.title or one.description] for one in shown))
    if len(mapped.endpoints) > len(shown):
        terminal.say(f"… and {len(mapped.endpoints) - len(shown)} more; --json lists every one.")


def show_left_out(mapped: Mapped) -> None:
    grouped = by_reason(mapped.left_out)
    for reason, operations in list(grouped.items())[:_SHOWN_REASONS]:
        terminal.item("left", "yellow", f"{some_of(operations)}: {reason}")
    if len(grouped) > _SHOWN_REASONS:
        terminal.say(f"… and {len(grouped) - _SHOWN_REASONS} more reasons; --json lists every one.")


def summary(mapped: Mapped) -> str:
    count = len(mapped.endpoints)
    parts = [f"{count} tool{'s' * (count != 1)}"]
    if mapped.left_out:
        parts.append(f"{len(mapped.left_out)} left out")
    if mapped.not_chosen:
        parts.append(f"{mapped.not_chosen} not chosen")
    return f"{mapped.title} {mapped.version}".strip() + f": {', '.join(parts)}."


def advice(mapped: Mapped) -> str | None:
    """What to do about a document of so many tools that no model reads them all."""
    size = sum(len(definition(endpoint)) for endpoint in mapped.endpoints)
    if size < _MANY_BYTES:
        return None
    return (
        f"Their definitions have {size // 1000} kB, which every client hands to its model. "
        'Choose some: "include": { "tags": […], "paths": […], "methods": ["GET"] }.'
    )


def as_dict(mapped: Mapped) -> dict[str, Any]:
    return {
        "title": mapped.title,
        "version": mapped.version,
        "baseUrl": mapped.base_url,
        "tools": [
            {"name": one.name, "method": one.method, "path": one.path, "description": one.description}
            for one in mapped.endpoints
        ],
        "leftOut": [_left_out(one) for one in mapped.left_out],
        "notChosen": mapped.not_chosen,
    }


def _left_out(one: LeftOut) -> dict[str, str]:
    return {"operation": one.operation, "reason": one.reason}
