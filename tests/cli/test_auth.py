"""`pactgate auth explain`: what an operator is told about a token, and that it is never the token."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from tests.support.identity_provider import public_jwk, sign

KEY = ec.generate_private_key(ec.SECP256R1())
AUDIENCE = "https://gateway.example/mcp"
ISSUER = "https://idp.example"
HELD = "of-the-file-0123456789-abcdef"


def token(**claims: object) -> str:
    good = {"iss": ISSUER, "sub": "ann", "aud": AUDIENCE, "exp": int(time.time()) + 60, "scope": "mcp:write"}
    return sign({"alg": "ES256", "typ": "at+jwt", "kid": "k"}, {**good, **claims}, KEY)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    issuer = {"issuer": ISSUER, "audiences": [AUDIENCE], "jwks": {"keys": [public_jwk(KEY, kid="k")]}}
    auth = {"issuers": [issuer], "tokens": {"ci": {"token": HELD}}}
    (tmp_path / "pactgate.json").write_text(json.dumps({"auth": auth, "mcpServers": {}}))
    (tmp_path / "pactgate.json").chmod(0o600)
    return tmp_path


def explain(folder: Path, sent: str, *options: str) -> subprocess.CompletedProcess[str]:
    argument = "-" if sent else ""
    words = [sys.executable, "-m", "pactgate", "auth", "explain", *([argument] if argument else []), *options]
    return subprocess.run(words, cwd=folder, input=sent, capture_output=True, text=True, timeout=30, check=False)


def test_a_good_token_is_explained_with_what_it_may_call(folder: Path) -> None:
    sent = token()
    done = explain(folder, sent + "\n", "--json")
    assert done.returncode == 0
    said = json.loads(done.stdout)
    assert said["accepted"] is True
    assert said["subject"] == f"{ISSUER}#ann"
    assert said["mayCall"] == ["query", "mutation", "scan"]
    assert not any(part in done.stdout + done.stderr for part in sent.split("."))


def test_a_bad_token_is_explained_with_the_step_that_fails(folder: Path) -> None:
    done = explain(folder, token(aud="https://other.example"))
    assert done.returncode == 1
    assert "https://other.example" in done.stdout
    assert done.stdout.rstrip().endswith("The token is not accepted.")


def test_a_token_of_the_file_is_known_by_its_holder(folder: Path) -> None:
    done = explain(folder, HELD)
    assert (done.returncode, HELD in done.stdout) == (0, False)
    assert "ci" in done.stdout


def test_a_token_on_the_command_line_is_warned_about(folder: Path) -> None:
    done = explain(folder, "", token())
    assert done.returncode == 0
    assert "ps" in done.stderr
