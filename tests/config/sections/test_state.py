"""The section `state`: what replicas share."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from pactgate.config.change import shown
from pactgate.config.load import load
from pactgate.config.model import Config
from pactgate.config.problems import ConfigurationError
from pactgate.config.sections.state import NEEDS_STORE, read_keys

KEY = "5e" * 32
STORE = "redis://user:longpassword@store:6379/0"


def loaded(folder: Path, state: dict[str, Any], *, host: str = "127.0.0.1", **environ: str) -> Config:
    file = folder / "pactgate.json"
    settings = {"mcpServers": {"a": {"command": "true"}}, "state": state, "listen": {"host": host}}
    file.write_text(json.dumps(settings))
    return load(file, environ=environ)


def problems(folder: Path, state: dict[str, Any]) -> list[str]:
    with pytest.raises(ConfigurationError) as caught:
        loaded(folder, state)
    return [problem.path for problem in caught.value.problems]


def test_without_the_section_nothing_is_shared() -> None:
    assert Config().state.url is None
    assert Config().state.key is None


def test_the_key_may_come_from_the_environment_and_is_masked(tmp_path: Path) -> None:
    config = loaded(tmp_path, {"url": STORE}, PACTGATE_KEY=KEY)
    assert config.state.key == KEY
    assert {KEY, "longpassword"} <= set(config.secrets)
    assert KEY not in json.dumps(shown(config))
    assert "longpassword" not in json.dumps(shown(config))


@pytest.mark.parametrize(
    "text", [KEY, base64.b64encode(bytes(32)).decode(), base64.urlsafe_b64encode(b"\xff" * 32).decode()]
)
def test_a_key_is_32_bytes_in_hexadecimal_or_base64(text: str) -> None:
    (key,) = read_keys(text)
    assert len(key) == 32


def test_older_keys_follow_the_current_one_and_each_is_masked(tmp_path: Path) -> None:
    older = base64.b64encode(b"\xff" * 32).decode()
    config = loaded(tmp_path, {"url": STORE}, PACTGATE_KEY=f"{KEY},{older}")
    assert read_keys(config.state.key or "") == (bytes.fromhex(KEY), b"\xff" * 32)
    assert {KEY, older} <= set(config.secrets)


@pytest.mark.parametrize(
    "text",
    ["", "x", "5e" * 31, "é" * 32, "=" * 44, base64.b64encode(bytes(31)).decode(), f"{KEY},x", f"!!{'A' * 43}="],
)
def test_anything_else_is_no_key(text: str) -> None:
    assert read_keys(text) == ()


def test_a_store_without_a_key_is_refused(tmp_path: Path) -> None:
    assert problems(tmp_path, {"url": STORE}) == ["state.key"]


@pytest.mark.parametrize("url", ["http://store", "redis://", "redis://store:0", "redis://store:x", "store:6379"])
def test_a_url_that_is_no_store_is_refused(tmp_path: Path, url: str) -> None:
    assert problems(tmp_path, {"url": url, "key": KEY})[0] == "state.url"


def test_what_has_no_effect_without_a_store_is_refused(tmp_path: Path) -> None:
    assert problems(tmp_path, {"key": KEY, "hop": {"port": 1}, "keyPrefix": "x"}) == ["state.hop", "state.keyPrefix"]


def test_an_address_that_nobody_can_connect_to_is_refused(tmp_path: Path) -> None:
    state: dict[str, Any] = {"url": STORE, "key": KEY, "hop": {"host": "0.0.0.0"}}
    assert problems(tmp_path, state) == ["state.hop.host"]
    state["hop"]["advertise"] = "${POD_IP}"
    assert loaded(tmp_path, state, POD_IP="10.1.2.3").state.hop.advertise == "10.1.2.3"


def test_replicas_without_a_store_are_told_what_they_can_not_share(tmp_path: Path) -> None:
    warnings = loaded(tmp_path, {"key": KEY}).warnings
    warning = next(one for one in warnings if one.path == "state")
    assert all(feature in warning.message for feature in NEEDS_STORE)


def test_replicas_that_would_each_generate_a_token_are_told_so(tmp_path: Path) -> None:
    everywhere = loaded(tmp_path, {"key": KEY, "url": STORE}, host="0.0.0.0").warnings
    assert any("token of its own" in warning.message for warning in everywhere)
    assert not any("token of its own" in one.message for one in loaded(tmp_path, {"key": KEY, "url": STORE}).warnings)
