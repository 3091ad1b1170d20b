"""An in-process server for a REST API that an OpenAPI document describes.

The files of a document are polled. A valid change is applied in place: running calls are not disturbed, and clients get a
list_changed notification. An invalid change closes the connection with the reason, and the next valid state opens it again. Must not:
fetch a URL again by itself; it is read when the server is connected.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, Final

from msgspec import Raw

from pactgate.config.sections.openapi import is_url
from pactgate.config.server_settings import ServerConfig
from pactgate.core.failures import GatewayFailure
from pactgate.upstreams.http.client import HttpClient
from pactgate.upstreams.http.egress import EgressPolicy, named_origins
from pactgate.upstreams.openapi.mapping import MappedDocument, by_reason, some_of
from pactgate.upstreams.openapi.source import has_changed, load_document
from pactgate.upstreams.rest.server import RestApi, RestServer

LOOK_EVERY_S: Final = 2.0
_TITLE_CHARS: Final = 100
_TOLD_REASONS: Final = 100


class OpenApiServer:
    """The tools of one document, once it is loaded. `close` ends the polling."""

    def __init__(self, config: ServerConfig, client: HttpClient, *, max_body_bytes: int) -> None:
        self.info: dict[str, Any] = {}
        self._config = config
        self._client = client
        self._max_body_bytes = max_body_bytes
        self._watching: asyncio.Task[None] | None = None

    async def load(self) -> None:
        """Load the document. Raises if it can't be used, and changes nothing then."""
        loaded = await load_document(self._config, self._client)
        # In a thread like the reading: the tools of a large document are a tenth of a second of work.
        self._rest = await asyncio.to_thread(self._make, loaded.mapped)
        self._loaded = loaded
        self.info = self._rest.info

    @property
    def left_out(self) -> tuple[str, ...]:
        """Each reason once, with some of its operations: thousands may be skipped. The reason first: long lines are cut."""
        grouped = by_reason(self._loaded.mapped.left_out)
        told = tuple(f"{reason}: {some_of(operations)}" for reason, operations in grouped.items())
        more = len(told) - _TOLD_REASONS
        return (*told[:_TOLD_REASONS], f"and {more} more reasons") if more > 0 else told

    def definitions(self) -> list[Raw]:
        return self._rest.definitions()

    async def call(self, name: str, params: Mapping[str, Raw]) -> bytes:
        return await self._rest.call(name, params)

    def watch(self, on_change: Callable[[], None], on_failure: Callable[[GatewayFailure], None]) -> None:
        """Poll the files of the document from now on, if it has any."""
        if self._loaded.files and self._watching is None:
            self._watching = asyncio.create_task(
                self._watch(on_change, on_failure), name=f"document of {self._config.id}"
            )

    async def close(self) -> None:
        watching, self._watching = self._watching, None
        if watching is not None and watching is not asyncio.current_task():
            watching.cancel()
            await asyncio.wait({watching})
        await self._rest.close()

    async def _watch(self, on_change: Callable[[], None], on_failure: Callable[[GatewayFailure], None]) -> None:
        while True:
            await asyncio.sleep(LOOK_EVERY_S)
            if not has_changed(self._loaded.files):
                continue
            try:
                await self.load()
            except GatewayFailure as failure:
                on_failure(failure)
                return
            on_change()

    def _make(self, mapped: MappedDocument) -> RestServer:
        api = described_api(self._config, mapped)
        return RestServer(self._config, api, self._client, max_body_bytes=self._max_body_bytes)


def described_api(config: ServerConfig, mapped: MappedDocument) -> RestApi:
    """The API of a document. A host that only the document names has to be public; else GatewayFailure is raised."""
    written = [config.base_url, config.openapi if config.openapi and is_url(config.openapi) else None]
    named = named_origins(written, config.allowed_hosts)
    try:
        EgressPolicy(config.id, named).target(mapped.base_url)
    except GatewayFailure as failure:
        failure.reword(lambda text: f"{text} Only its document names that host; `baseUrl` names it as well.")
        failure.details["permanent"] = True
        raise
    info = {"name": config.id, "version": mapped.version or "1", "title": (config.name or mapped.title)[:_TITLE_CHARS]}
    return RestApi(mapped.endpoints, mapped.base_url, named, info, mapped.credentials)
