"""Where documents come from: files and those beside them, URLs, and nothing else."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from pactgate.config.server_settings import ServerConfig
from pactgate.core.failures import GatewayFailure
from pactgate.upstreams.http.client import HttpClient
from pactgate.upstreams.openapi import source
from pactgate.upstreams.openapi.document_text import UnreadableDocumentError
from pactgate.upstreams.openapi.source import LoadedDocument, has_changed, load_document, map_file
from tests.support.openapi import document, operation
from tests.support.rest_api import serving
from tests.support.scripted_http import answer

PATHS = {"/x": {"get": operation("ask")}}


def written(folder: Path, paths: Any, name: str = "api.json") -> ServerConfig:
    file = folder / name
    file.parent.mkdir(exist_ok=True)
    file.write_text(json.dumps(document(paths)))
    return ServerConfig(id="api", openapi=str(file))


async def loading(config: ServerConfig) -> LoadedDocument:
    client = HttpClient()
    try:
        return await load_document(config, client)
    finally:
        await client.close()


async def test_a_file_is_read_and_known_by_its_state(tmp_path: Path) -> None:
    config = written(tmp_path, PATHS)
    loaded = await loading(config)
    assert [one.name for one in loaded.mapped.endpoints] == ["ask"]
    assert not has_changed(loaded.files)
    written(tmp_path, {"/y": PATHS["/x"]})
    assert has_changed(loaded.files)
    (tmp_path / "api.json").unlink()
    assert has_changed(loaded.files)


def test_files_beside_the_document_belong_to_it(tmp_path: Path) -> None:
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "paths.yaml").write_text("get: {operationId: beside, responses: {}}\n")
    found = map_file(written(tmp_path, {"/x": {"$ref": "parts/paths.yaml"}}))
    assert [one.name for one in found.endpoints] == ["beside"]


def test_a_link_cant_lead_out_of_the_folder(tmp_path: Path) -> None:
    (tmp_path / "secret.yaml").write_text("get: {operationId: secret, responses: {}}\n")
    inner = tmp_path / "docs"
    inner.mkdir()
    (inner / "link.yaml").symlink_to(tmp_path / "secret.yaml")
    for reference in ("link.yaml", "../secret.yaml", str(tmp_path / "secret.yaml")):
        found = map_file(written(inner, {"/x": {"$ref": reference}}))
        assert not found.endpoints
        assert len(found.left_out) == 1


@pytest.mark.parametrize("name", ["missing.json", "folder", "pipe"])
async def test_what_is_no_readable_file_says_so_and_only_a_change_mends_it(tmp_path: Path, name: str) -> None:
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(GatewayFailure) as raised:
        await loading(ServerConfig(id="api", openapi=str(tmp_path / name)))
    assert raised.value.details["permanent"]
    assert "The OpenAPI document of api" in raised.value.message


def test_all_files_together_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "MAX_ALL_FILES_BYTES", 10)
    with pytest.raises(UnreadableDocumentError, match="too large with all its files"):
        map_file(written(tmp_path, PATHS))


async def test_a_document_is_fetched_from_its_url_and_names_its_own_host() -> None:
    root = {**document(PATHS), "servers": [{"url": "/v1"}]}
    async with serving(answer(root)) as api:
        loaded = await loading(ServerConfig(id="api", openapi=f"{api.origin}/spec/api.json"))
        assert loaded.mapped.base_url == f"{api.origin}/v1"
        assert loaded.files == {}
        assert [one.path for one in api.requests] == ["/spec/api.json"]


async def test_headers_go_with_the_document_only_where_its_api_is() -> None:
    async with serving(answer(document(PATHS))) as api:
        url, headers = f"{api.origin}/api.json", {"Authorization": "Bearer s3cret"}
        await loading(ServerConfig(id="api", openapi=url, base_url=f"{api.origin}/v1", headers=headers))
        await loading(ServerConfig(id="api", openapi=url, base_url="https://elsewhere.example", headers=headers))
        assert [one.headers.get("authorization") for one in api.requests] == ["Bearer s3cret", None]


@pytest.mark.parametrize("status", [301, 404, 500])
async def test_an_answer_that_is_no_document_is_a_failure_that_may_pass(status: int) -> None:
    head = f"HTTP/1.1 {status} X\r\nLocation: https://evil.example/\r\nContent-Length: 0\r\n\r\n".encode()
    async with serving(head) as api:
        with pytest.raises(GatewayFailure) as raised:
            await loading(ServerConfig(id="api", openapi=f"{api.origin}/api.json"))
        assert str(status) in raised.value.message
        assert "permanent" not in raised.value.details
        assert len(api.requests) == 1


async def test_references_of_a_fetched_document_are_not_fetched(tmp_path: Path) -> None:
    root = document({"/x": {"$ref": "other.json"}, "/y": PATHS["/x"]})
    async with serving(answer(root)) as api:
        loaded = await loading(ServerConfig(id="api", openapi=f"{api.origin}/api.json"))
        assert len(api.requests) == 1
        assert len(loaded.mapped.endpoints) == len(loaded.mapped.left_out) == 1
