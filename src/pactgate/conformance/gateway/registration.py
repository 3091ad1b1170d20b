"""Tells a gateway that is configured through its API about the scripted servers, once it listens.

What it refuses is no failure here: the server then is not listed, which is what the checks see. Must not: know a kind of gateway.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Mapping
from typing import Final

from pactgate.core.failures import GatewayFailure
from pactgate.upstreams.http.client import HttpClient
from pactgate.upstreams.http.request_message import HttpTarget, header_block

_POLL_S: Final = 0.3
_REQUEST_S: Final = 30.0


async def register(url: str, bodies: Iterable[bytes], headers: Mapping[str, str], limit_s: float) -> None:
    """POST each body to this address, the first as soon as somebody listens there, at the latest until the limit."""
    http, target = HttpClient(), HttpTarget("the gateway", url)
    block = header_block([*headers.items(), ("Content-Type", "application/json"), ("Accept", "application/json")])
    ends = time.monotonic() + limit_s
    try:
        for body in bodies:
            while time.monotonic() < ends:
                try:
                    async with asyncio.timeout(_REQUEST_S):
                        await http.request(b"POST", target, block, body, takes_any=True)
                    break
                except (GatewayFailure, TimeoutError):
                    await asyncio.sleep(_POLL_S)
    finally:
        await http.close()
