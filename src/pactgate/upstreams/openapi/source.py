"""Loads and maps an OpenAPI document: a file with the files beside it, or a URL.

Reading and mapping happen in a thread, because a large document takes a second, and other servers must not wait. An unusable document
is a permanent failure until it changes. Must not: follow a redirect, fetch anything a document names, read outside the document's
folder, or show the location of a document in a message. The bytes of one document and of all its files are bounded.
"""

from __future__ import annotations

import asyncio
import os
from typing import Any, Final, NamedTuple

from pactgate.config.file_access import FileState, file_state, read_regular_file
from pactgate.config.problems import UnreadableError
from pactgate.config.sections.openapi import is_url
from pactgate.config.server_settings import ServerConfig
from pactgate.core.failures import GatewayFailure, Kind
from pactgate.upstreams.http.client import HttpClient
from pactgate.upstreams.http.proxy import network_of
from pactgate.upstreams.http.request_message import HttpTarget, header_block
from pactgate.upstreams.openapi.document_text import MAX_DOCUMENT_BYTES, UnreadableDocumentError, read_text
from pactgate.upstreams.openapi.mapping import MappedDocument, map_document

MAX_ALL_FILES_BYTES: Final = 2 * MAX_DOCUMENT_BYTES
_ACCEPT: Final = ("Accept", "application/json, application/yaml, application/vnd.oai.openapi;q=0.9, */*;q=0.1")


class LoadedDocument(NamedTuple):
    """A mapped document; `files` are its files and their states, none for a URL."""

    mapped: MappedDocument
    files: dict[str, FileState]


async def load_document(config: ServerConfig, client: HttpClient) -> LoadedDocument:
    """The document of a server. The caller bounds the time. Raises GatewayFailure."""
    source = config.openapi
    assert source is not None
    data = await _fetch(config, source, client) if is_url(source) else None
    try:
        return await asyncio.to_thread(_map, config, data)
    except UnreadableDocumentError as problem:
        raise GatewayFailure(
            Kind.CONNECTION_FAILED,
            f"The OpenAPI document of {config.id} {problem.why}",
            server=config.id,
            operation="connect",
            details={"permanent": True},
        ) from problem


def map_file(config: ServerConfig) -> MappedDocument:
    """The mapped document of a server whose document is a file. Raises UnreadableDocumentError."""
    return _map(config, None).mapped


def has_changed(files: dict[str, FileState]) -> bool:
    return any(file_state(path) != state for path, state in files.items())


def _map(config: ServerConfig, fetched: bytes | None) -> LoadedDocument:
    assert config.openapi is not None
    try:
        if fetched is not None:
            return LoadedDocument(map_document(read_text(fetched), config, url=config.openapi), {})
        folder = _Folder(config.openapi)
        return LoadedDocument(map_document(folder.read_root(), config, read_file=folder.read), folder.files)
    except RecursionError:
        raise UnreadableDocumentError("is nested too deep") from None


async def _fetch(config: ServerConfig, url: str, client: HttpClient) -> bytes:
    network = network_of(config)
    target = HttpTarget(config.id, url, network=network)
    pairs = [("User-Agent", "pactgate"), _ACCEPT]
    if config.base_url is not None and HttpTarget(config.id, config.base_url, network=network).key == target.key:
        pairs += config.headers.items()  # a document beside its API may want the same credentials
    headers = header_block(pairs)
    response = await client.request(b"GET", target, headers, max_body_bytes=MAX_DOCUMENT_BYTES, takes_any=True)
    if response.status == 200:
        return response.body
    hint = "; give the address it leads to" if 300 <= response.status < 400 else ""
    raise GatewayFailure(
        Kind.HTTP_STATUS,
        f"{target} answered HTTP {response.status} where its OpenAPI document should be{hint}",
        server=config.id,
        operation="connect",
        details={"status": response.status},
    )


class _Folder:
    """The files of one document: those below its folder, and nothing else."""

    def __init__(self, document: str) -> None:
        self._document = os.path.realpath(document)
        self._folder = os.path.dirname(self._document)
        self._bytes = 0
        self.files: dict[str, FileState] = {}

    def read_root(self) -> Any:
        return self._read(self._document)

    def read(self, name: str) -> Any:
        """Read a file by its path relative to the document's folder."""
        path = os.path.realpath(os.path.join(self._folder, name))
        if not path.startswith(self._folder.rstrip(os.sep) + os.sep):
            raise UnreadableDocumentError("is not in the document's folder")
        return self._read(path)

    def _read(self, path: str) -> Any:
        try:
            data = read_regular_file(path, MAX_DOCUMENT_BYTES + 1)
        except UnreadableError as problem:
            raise UnreadableDocumentError(f"can't be loaded: {problem.message}") from None
        self._bytes += len(data)
        if self._bytes > MAX_ALL_FILES_BYTES:
            raise UnreadableDocumentError("is too large with all its files")
        if (state := file_state(path)) is not None:
            self.files[path] = state
        return read_text(data)
