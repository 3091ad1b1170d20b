"""Loads an OpenAPI document from where the operator said it is, and has it mapped: a file and the files beside it, or a URL.

Reading and mapping happen in a thread, because a large document takes a second that callers of other servers must not wait. A document that
can't be used is a failure that only a change of it can mend. Must not: follow a redirect, fetch anything a document names, read outside
the document's folder, or say in a message where a document is. Bounds: one document, all files of it, and their number.
"""

from __future__ import annotations

import asyncio
import os
import stat
from typing import Any, Final, NamedTuple

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

Stamp = tuple[int, int, int]
"""What tells one state of a file from another."""


class LoadedDocument(NamedTuple):
    """A document as it was when it was read; `files` are those it came from, none for a URL."""

    mapped: MappedDocument
    files: dict[str, Stamp]


async def load_document(config: ServerConfig, client: HttpClient) -> LoadedDocument:
    """The document of a server. The caller bounds the time. Raises a failure that says what to do about it."""
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
    """The document of a server whose document is a file. Raises UnreadableDocumentError."""
    return _map(config, None).mapped


def has_changed(files: dict[str, Stamp]) -> bool:
    return any(_stamp(path) != stamp for path, stamp in files.items())


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
        self.files: dict[str, Stamp] = {}

    def read_root(self) -> Any:
        return self._read(self._document)

    def read(self, name: str) -> Any:
        """A file by its path from the document's folder on."""
        path = os.path.realpath(os.path.join(self._folder, name))
        if not path.startswith(self._folder.rstrip(os.sep) + os.sep):
            raise UnreadableDocumentError("is not in the document's folder")
        return self._read(path)

    def _read(self, path: str) -> Any:
        data = _read_bytes(path)
        self._bytes += len(data)
        if self._bytes > MAX_ALL_FILES_BYTES:
            raise UnreadableDocumentError("is too large with all its files")
        stamp = _stamp(path)
        if stamp is not None:
            self.files[path] = stamp
        return read_text(data)


def _read_bytes(path: str) -> bytes:
    """The bytes of a regular file; never waits for a pipe or device to say something."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            if not stat.S_ISREG(os.fstat(handle).st_mode):
                raise UnreadableDocumentError("is not a regular file")
            with open(handle, "rb", closefd=False) as file:
                return file.read(MAX_DOCUMENT_BYTES + 1)
        finally:
            os.close(handle)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "its name holds a NUL"
        raise UnreadableDocumentError(f"can't be read: {reason}") from None


def _stamp(path: str) -> Stamp | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino
