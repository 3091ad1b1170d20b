"""Our gateway with what is optional turned on: `python strict_gateway.py CONFIG PORT`, with a configuration of the profile.

Tokens, an identity provider (nothing is fetched from it), permissions, rate limits, cache, captures and the audit log; programs are not
shared among clients.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

TOKEN = "b7c1e2f09a4d4c8e9f3360b1d5a7e842"
IDENTITY = {"Authorization": f"Bearer {TOKEN}"}
COMMAND = f"{sys.executable} {Path(__file__)} {{config}} {{port}}"
ISSUER = "https://idp.invalid/realms/gwp"
KEY = {
    "kty": "EC",
    "crv": "P-256",
    "kid": "1",
    "x": "MKBCTNIcKUSDii11ySs3526iDZ8AiTo7Tu6KPAqv7D4",
    "y": "4Etl6SRW2YiLUrN5vfvVHuhp7x8PxltmWWlbbM4IFyM",
}
"""The public key of RFC 7517, appendix A.1."""
OFTEN = {"rpm": 10_000, "burst": 1_000}


def settings(folder: Path) -> dict[str, Any]:
    return {
        "auth": {
            "tokens": {"gwp": {"token": TOKEN}},
            "issuers": [{"issuer": ISSUER, "audiences": ["gwp"], "jwks": {"keys": [KEY]}}],
        },
        "callers": {"team": {"tokens": ["gwp"]}},
        "permissions": [{"allow": "*", "to": "team"}],
        "rateLimits": {"enabled": True, "execution": OFTEN, "mutation": OFTEN, "read": OFTEN, "requests": OFTEN},
        "categories": {"*.gwp00*": "query"},
        "cache": {"tools": {"*.gwp00*": {}}},
        "capture": {"dir": str(folder / "captures")},
        "audit": {"file": str(folder / "audit.jsonl")},
    }


def main() -> None:
    path, port = Path(sys.argv[1]), sys.argv[2]
    config = json.loads(path.read_text())
    for entry in config["mcpServers"].values():
        if "command" in entry:
            entry["isolation"] = "session"
    path.write_text(json.dumps(config | settings(path.parent)))
    os.execv(sys.executable, [sys.executable, "-m", "pactgate", "serve", "--config", str(path), "--port", port])


if __name__ == "__main__":
    main()
