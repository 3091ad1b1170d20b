"""The page: for everybody who reaches the gateway, in a frame for nobody, and nothing from elsewhere."""

from __future__ import annotations

import gzip
import re

import pytest

from tests.support.consoles import serving_console
from tests.support.facing import serving
from tests.support.raw_http import get, post

MAX_BUNDLE_BYTES = 72 * 1024


async def test_a_browser_at_the_root_is_sent_to_the_console() -> None:
    async with serving_console() as console:
        answer = await console.served.ask(get("/", accept="text/html,*/*;q=0.8"))
        assert (answer.status, answer.header("location")) == (302, "/console/")
        assert (await console.served.ask(get("/console"))).status == 302
        assert (await console.served.ask(get("/", accept="application/json"))).status == 401
        assert (await console.served.ask(post(b"{}", "/", accept="text/html"))).status == 401


@pytest.mark.parametrize(
    "path", ["/console/", "/console/calls", "/console/calls/5b3b", "/console/tools/crm.get?find=x"]
)
async def test_every_screen_has_an_address_and_its_page_is_safe(path: str) -> None:
    async with serving_console() as console:
        answer = await console.served.ask(get(path))
        assert (answer.status, answer.header("content-type")) == (200, "text/html; charset=utf-8")
        policy = answer.header("content-security-policy") or ""
        for rule in ("default-src 'none'", "frame-ancestors 'none'", "require-trusted-types-for 'script'"):
            assert rule in policy
        assert "unsafe" not in policy
        assert answer.header("x-frame-options") == "DENY"
        assert not re.search(rb"<style|style=|<script(?![^>]* src=)| on\w+=", answer.body)


async def test_files_are_compressed_cached_and_small() -> None:
    async with serving_console() as console:
        page = await console.served.ask(get("/console/"))
        assets = re.findall(rb'(?:src|href)="(/console/assets/[^"]+)"', page.body)
        assert len(assets) == 2
        total = 0
        for path in [one.decode() for one in assets]:
            plain = await console.served.ask(get(path))
            packed = await console.served.ask(get(path, accept_encoding="gzip, br"))
            assert packed.header("content-encoding") == "gzip"
            assert gzip.decompress(packed.body) == plain.body
            assert "immutable" in (packed.header("cache-control") or "")
            async with console.served.client() as client:
                await client.send(get(path, if_none_match=packed.header("etag") or ""))
                assert (await client.head()).status == 304
            total += len(packed.body)
        assert total <= MAX_BUNDLE_BYTES


@pytest.mark.parametrize("path", ["/console/assets/x.js", "/console/assets/../index.html", "/console/assets/%2e%2e/x"])
async def test_only_files_of_the_bundle_are_served(path: str) -> None:
    async with serving_console(anonymous=True) as console:
        assert (await console.served.ask(get(path))).status == 404


async def test_without_a_console_its_paths_do_not_exist() -> None:
    async with serving() as served:
        for path in ("/", "/console/", "/console/session", "/api/stream"):
            assert (await served.ask(get(path, accept="text/html", x_pactgate_console="x"))).status == 404, path
