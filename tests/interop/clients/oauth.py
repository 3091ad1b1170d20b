"""The Python client with its own OAuth: from a bare 401 over discovery, registration and login to a call. Jobs as in `sdk2.py`."""

from __future__ import annotations

import asyncio
import json
import sys
import urllib.request
import warnings
from http.cookiejar import CookieJar
from typing import Any
from urllib.error import HTTPError
from urllib.parse import parse_qs, urlsplit

import httpx2
from mcp.client.auth import OAuthClientProvider
from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import AuthorizationCodeResult, OAuthClientInformationFull, OAuthClientMetadata, OAuthToken
from pydantic import AnyUrl

CALLBACK = "http://127.0.0.1:9/callback"


class Held:
    """What the client's storage holds."""

    def __init__(self) -> None:
        self.tokens: OAuthToken | None = None
        self.client: OAuthClientInformationFull | None = None

    async def get_tokens(self) -> OAuthToken | None:
        return self.tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self.tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self.client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self.client = client_info


class _StopAtCallback(urllib.request.HTTPRedirectHandler):
    """Follows the redirects of the provider like a browser, up to the one back to the client."""

    def redirect_request(self, req: Any, fp: Any, code: Any, msg: Any, headers: Any, newurl: str) -> Any:
        if newurl.startswith(CALLBACK):
            raise HTTPError(newurl, 302, "back", headers, fp)
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def log_in(url: str) -> dict[str, str]:
    """What the provider sends the client back with."""
    browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(CookieJar()), _StopAtCallback)
    try:
        with browser.open(url, timeout=10) as page:
            raise AssertionError(f"the login ended with a page: {page.read(300)!r}")
    except HTTPError as back:
        answer = {name: values[0] for name, values in parse_qs(urlsplit(back.url).query).items()}
    assert "code" in answer, f"the login failed: {answer}"
    return answer


async def play(job: dict[str, Any]) -> dict[str, Any]:
    held = Held()
    logins: list[str] = []
    answers: list[dict[str, str]] = []
    if "clientId" in job:
        known = {"client_id": job["clientId"], "issuer": job["issuer"], "redirect_uris": [CALLBACK]}
        held.client = OAuthClientInformationFull.model_validate({**known, "token_endpoint_auth_method": "none"})

    async def redirect(url: str) -> None:
        logins.append(url)
        answers.append(await asyncio.to_thread(log_in, url))

    async def callback() -> AuthorizationCodeResult:
        answer = answers.pop()
        return AuthorizationCodeResult(code=answer["code"], state=answer.get("state"), iss=answer.get("iss"))

    metadata = OAuthClientMetadata(
        client_name="pactgate-interop",
        redirect_uris=[AnyUrl(CALLBACK)],
        grant_types=["authorization_code", "refresh_token"],
        token_endpoint_auth_method="none",
    )
    login = OAuthClientProvider(job["url"], metadata, held, redirect, callback)
    said = []
    async with (
        httpx2.AsyncClient(auth=login, timeout=10) as http,
        Client(streamable_http_client(job["url"], http_client=http)) as client,
    ):
        for tool in job["tools"]:
            result = await client.call_tool(tool, {})
            said.append("".join(getattr(block, "text", "") for block in result.content))
    return {
        "said": said,
        "logins": len(logins),
        "scope": held.tokens and held.tokens.scope,
        "token": held.tokens and held.tokens.access_token,
    }


async def main() -> None:
    warnings.simplefilter("ignore")
    for job in json.load(sys.stdin):
        try:
            outcome = await asyncio.wait_for(play(job), job["seconds"])
        except BaseException as problem:  # noqa: BLE001 - whatever a client raises is the finding to report
            outcome = {"error": repr(problem), "causes": [repr(one) for one in getattr(problem, "exceptions", ())]}
        print(json.dumps({"job": job, **outcome}), flush=True)


if __name__ == "__main__":
    asyncio.run(main())
