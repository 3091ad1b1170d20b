"""The settings themselves: their defaults, what follows from them, and that they keep their secrets."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from pactgate.config.model import Config, WireSection
from pactgate.config.sections.auth import Auth, Token
from pactgate.config.sections.listen import ListenSection
from pactgate.config.sections.rate_limits import ToolRate
from pactgate.config.server_settings import ServerConfig
from pactgate.core.failures import Plane
from tests.config.writing import loaded

TOKENS = {"ops": Token(token="0123456789abcdef")}


def config(host: str = "127.0.0.1", anonymous: bool | None = None, tokens: dict[str, Token] | None = None) -> Config:
    return Config(listen=ListenSection(host=host), auth=Auth(anonymous=anonymous, tokens=tokens or {}))


@pytest.mark.parametrize(
    ("given", "allows_anonymous", "needs_token"),
    [
        (config(), True, False),
        (config(tokens=TOKENS), False, False),
        (config(anonymous=True, tokens=TOKENS), True, False),
        (config(anonymous=False), False, True),
        (config("0.0.0.0"), False, True),
        (config("0.0.0.0", tokens=TOKENS), False, False),
        (config("0.0.0.0", anonymous=True), True, False),
        (config("::1"), True, False),
    ],
)
def test_who_is_served_follows_from_address_and_tokens(
    given: Config, allows_anonymous: bool, needs_token: bool
) -> None:
    assert (given.allows_anonymous, given.needs_token) == (allows_anonymous, needs_token)


def test_defaults_are_those_of_the_requirement_documents() -> None:
    server = ServerConfig(id="files", command="x")
    assert (server.connection_timeout_ms, server.request_timeout_ms, server.max_retries) == (10_000, 60_000, 3)
    assert (server.enabled, server.era, server.transport) == (True, "auto", "auto")
    settings = Config()
    assert (settings.listen.host, settings.listen.port) == ("127.0.0.1", 7411)
    assert settings.timeouts.default_timeout_ms == 30_000
    assert settings.limits.max_request_bytes == 10_485_760
    assert settings.response.max_response_bytes == 1_048_576
    assert settings.naming.exposed == "double_underscore"


@pytest.mark.requirement("S2/MCP-006")
def test_rates_are_those_of_the_tool_contract_and_on_unless_they_are_switched_off() -> None:
    rates = Config().rate_limits
    assert rates.enabled
    assert (rates.execution.rpm, rates.execution.burst) == (30, 5)
    assert (rates.mutation.rpm, rates.mutation.burst) == (100, 20)
    assert (rates.read.rpm, rates.read.burst) == (200, 50)
    assert rates.tools == {}


@pytest.mark.requirement("S2/MCP-006")
def test_a_rate_that_is_half_set_keeps_its_other_half(tmp_path: Path) -> None:
    given = {"execution": {"rpm": 60}, "tools": {"files.*": {"rpm": 10_000, "burst": 1000}}}
    rates = loaded(tmp_path, {"rateLimits": given}).rate_limits
    assert (rates.execution.rpm, rates.execution.burst) == (60, 5)
    assert rates.tools == {"files.*": ToolRate(rpm=10_000, burst=1000)}


def test_the_words_for_failures_on_the_wire_are_planes_of_the_failure_table() -> None:
    planes = WireSection(argument_errors="tool_result").planes()
    assert (planes.argument_errors, planes.timeouts) == (Plane.RESULT, Plane.ERROR)


def test_a_configuration_can_not_be_changed() -> None:
    with pytest.raises(AttributeError):
        Config().listen.port = 1  # type: ignore[misc]


def test_a_configuration_shows_no_secret_when_it_is_printed() -> None:
    secret = "canary-0123456789"
    server = ServerConfig(id="crm", url="https://crm.example", headers={"Authorization": secret}, env={"KEY": secret})
    whole = Config(servers={"crm": server}, auth=Auth(tokens={"ops": Token(token=secret)}), secrets=(secret,))
    assert secret not in f"{whole!r} {whole} {whole.auth!r} {whole.servers!r}"


def test_loading_imports_nothing_it_does_not_need() -> None:
    code = (
        "import sys, pathlib, pactgate.config.load as load; load.load(None, environ={}); "
        "print([name for name in ('yaml', 'tomllib', 'difflib', 'asyncio', 'socket', 'click') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=20, check=True)
    assert done.stdout.strip() == "[]"
