"""The OpenAPI documents of a configuration, as `pactgate check` shows them: how many tools, what is left out and why.

Only files are read: without `--live` nothing is connected to. Must not: import the mapping unless there is a document.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pactgate.cli import terminal
from pactgate.config.model import Config
from pactgate.config.sections.openapi import is_url

if TYPE_CHECKING:
    from pactgate.upstreams.openapi.mapping import Mapped


def read_documents(config: Config) -> dict[str, Mapped | str]:
    """By the server's id: what its document becomes, or why it can't be used."""
    described = [one for one in config.servers.values() if one.enabled and one.openapi and not is_url(one.openapi)]
    if not described:
        return {}
    from pactgate.core.failures import GatewayFailure
    from pactgate.upstreams.openapi.document_text import UnreadableDocument
    from pactgate.upstreams.openapi.server import described_api
    from pactgate.upstreams.openapi.source import map_file

    found: dict[str, Mapped | str] = {}
    for server in described:
        try:
            mapped = map_file(server)
            described_api(server, mapped)
            found[server.id] = mapped
        except UnreadableDocument as problem:
            found[server.id] = f"its OpenAPI document {server.openapi} {problem.why}"
        except GatewayFailure as failure:
            found[server.id] = failure.message
    return found


def show_documents(found: dict[str, Mapped | str]) -> None:
    if not found:
        return
    from pactgate.cli import documents

    for server, mapped in found.items():
        if isinstance(mapped, str):
            terminal.item("bad", "red", f"{server}: {mapped}")
            continue
        terminal.say(f"{server}: {documents.summary(mapped)}")
        documents.show_left_out(mapped)
        if (text := documents.advice(mapped)) is not None:
            terminal.say(text)


def documents_report(found: dict[str, Mapped | str]) -> dict[str, Any]:
    if not found:
        return {}
    from pactgate.cli import documents

    rows = (
        {"serverId": server, **({"problem": mapped} if isinstance(mapped, str) else documents.as_dict(mapped))}
        for server, mapped in found.items()
    )
    return {"documents": list(rows)}
