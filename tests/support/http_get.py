"""One GET, from a test that is not asynchronous."""

from __future__ import annotations

import urllib.request
from urllib.error import HTTPError


def fetch(url: str, **headers: str) -> bytes:
    """The body. Raises `urllib.error.HTTPError` for a refusal."""
    assert url.startswith("http://127.0.0.1:")
    with urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=5) as answer:
        body: bytes = answer.read()
        return body


def status_of(url: str, **headers: str) -> int:
    try:
        fetch(url, **headers)
    except HTTPError as refusal:
        with refusal:
            return refusal.code
    return 200
