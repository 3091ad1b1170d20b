"""The gateways that are scored, as data: their installations, and the command line that tests them.

Each runs with the defaults of its documentation, except for what the profile needs: the address 127.0.0.1, rate limits off (ours too),
and servers on this machine allowed. The command is what the page shows, so that anybody can run it. What a maintainer says about a
finding stands in `notes`, with the link. Must not: judge.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from msgspec import Struct

from pactgate.conformance.gateway.dialects import DIALECTS

_TEST: Final = "pactgate compliance gateway"
_SECRET: Final = "gateway-profile-0123456789abcdef0123456789"
_ERA: Final = (
    "By intent: a proxy speaks to its server in the version of its client "
    "([PrefectHQ/fastmcp#4573](https://github.com/PrefectHQ/fastmcp/pull/4573))."
)
_UNKNOWN_METHOD: Final = (
    "From the Python SDK; open there ([modelcontextprotocol/python-sdk#1561]"
    "(https://github.com/modelcontextprotocol/python-sdk/issues/1561))."
)
_NOT_ASKED: Final = (
    "Known; asked for and closed as stale ([BerriAI/litellm#23761](https://github.com/BerriAI/litellm/issues/23761))."
)


class ScoredGateway(Struct, frozen=True):
    """One gateway in one setting. `environment` names its installation in `.tools/peers`; empty: a program of the system, or ours."""

    name: str
    title: str
    package: str
    """As `npm`, `pypi`, `system` or `ours`, and the name, for its version."""
    command: str
    environment: str = ""
    setup: Mapping[str, str] = {}
    """Environment variables, which the page shows too."""
    remark: str = ""
    notes: Mapping[str, str] = {}
    """What to know about the finding of a check, by code."""
    is_ours: bool = False


def _test(dialect: str, start: str = "", more: str = "") -> str:
    return f"{_TEST} --for {dialect} --start '{start or DIALECTS[dialect].start}'" + (f" {more}" if more else "")


_LIST_CHANGED: Final = "Known, open ([PrefectHQ/fastmcp#4161](https://github.com/PrefectHQ/fastmcp/issues/4161))."
_OVER_HTTP: Final = "--servers legacyhttp,modernhttp,dualhttp,pagedhttp"
_FASTMCP_REMARK: Final = (
    "Each protocol version is scored alone. Its cache of definitions is shared by all clients, and each list replaces it: after a client "
    "of 2026-07-28 has listed, an older one gets `Unknown tool` for the servers that only speak the older versions, and most checks fail "
    "for this one reason. Without stdio servers, because it starts all of them for each request, which takes longer than a run may."
)
_FASTMCP_NOTES: Final = {
    "GWP-041": _ERA,
    "GWP-042": _ERA,
    "GWP-070": _LIST_CHANGED,
    "GWP-071": _LIST_CHANGED,
    "GWP-124": "By intent: the servers of a proxy get the headers of its client "
    "([PrefectHQ/fastmcp#3837](https://github.com/PrefectHQ/fastmcp/pull/3837)).",
}
_LOOPBACK: Final = {"NODE_OPTIONS": f"--require={Path(__file__).with_name('loopback.cjs')}"}
"""Not shown: it only keeps the test off the network."""

GATEWAYS: Final = (
    ScoredGateway(
        name="pactgate",
        title="Pactgate",
        package="ours:pactgate",
        command=_test("pactgate"),
        notes={
            "GWP-015": "By intent: an error of a server for `tools/call` is a result with `isError`, so that the model sees it "
            "([D5](decisions.md)).",
        },
        is_ours=True,
    ),
    ScoredGateway(
        name="nginx",
        title="nginx, a reverse proxy",
        package="system:nginx",
        command=_test("nginx"),
        remark="It passes bytes on and knows no MCP: what it passes shows that the checks are fair. It has an address for each server.",
    ),
    ScoredGateway(
        name="fastmcp-legacy",
        title="FastMCP proxy, clients up to 2025-11-25",
        package="pypi:fastmcp",
        command=_test("fastmcp", more=f"--era legacy {_OVER_HTTP}"),
        environment="fastmcp",
        remark=_FASTMCP_REMARK,
        notes=_FASTMCP_NOTES,
    ),
    ScoredGateway(
        name="fastmcp-modern",
        title="FastMCP proxy, clients of 2026-07-28",
        package="pypi:fastmcp",
        command=_test("fastmcp", more=f"--era modern {_OVER_HTTP}"),
        environment="fastmcp",
        remark=_FASTMCP_REMARK,
        notes=_FASTMCP_NOTES,
    ),
    ScoredGateway(
        name="mcp-proxy",
        title="mcp-proxy (PyPI)",
        package="pypi:mcp-proxy",
        command=_test("mcp-proxy"),
        environment="mcp-proxy",
        notes={"GWP-142": _UNKNOWN_METHOD},
    ),
    ScoredGateway(
        name="mcp-proxy-npm",
        title="mcp-proxy (npm)",
        package="npm:mcp-proxy",
        command=_test("mcp-proxy", "mcp-proxy --host 127.0.0.1 --port {port} -- {command}"),
        environment="node",
    ),
    ScoredGateway(
        name="supergateway",
        title="supergateway (npm)",
        package="npm:supergateway",
        command=_test("supergateway"),
        environment="node",
        setup=_LOOPBACK,
    ),
    ScoredGateway(
        name="contextforge",
        title="ContextForge",
        package="pypi:mcp-contextforge-gateway",
        command=_test(
            "contextforge",
            more='--header "Authorization: Bearer $(python -m mcpgateway.utils.create_jwt_token --username admin@example.com '
            '--admin --exp 60 --secret $JWT_SECRET_KEY 2>/dev/null | tail -n 1)"',
        ),
        environment="contextforge",
        setup={
            "JWT_SECRET_KEY": _SECRET,
            "AUTH_ENCRYPTION_SECRET": _SECRET,
            "PLATFORM_ADMIN_EMAIL": "admin@example.com",
            "PLATFORM_ADMIN_PASSWORD": "Gateway-profile-1",
            "SSRF_ALLOW_LOCALHOST": "true",
            "SSRF_ALLOW_PRIVATE_NETWORKS": "true",
            "RATE_LIMITING_ENABLED": "false",
        },
        remark="The newest version that its package offers for Python 3.11. Its stateful sessions are off by default, and with them the "
        "stream on which progress, log messages and questions of servers could arrive.",
        notes={
            "GWP-034": "Known and open ([IBM/mcp-context-forge#5472]"
            "(https://github.com/IBM/mcp-context-forge/issues/5472)).",
            "GWP-101": "Known in part, open ([IBM/mcp-context-forge#4445](https://github.com/IBM/mcp-context-forge/issues/4445)).",
            "GWP-142": _UNKNOWN_METHOD,
        },
    ),
    ScoredGateway(
        name="litellm",
        title="LiteLLM proxy",
        package="pypi:litellm",
        command=_test("litellm", more="--wait 120"),
        environment="litellm",
        notes={
            "GWP-029": "Known: with more than one server, resources can't be read ([BerriAI/litellm#34906]"
            "(https://github.com/BerriAI/litellm/issues/34906)).",
            "GWP-100": _NOT_ASKED,
            "GWP-101": _NOT_ASKED,
            "GWP-102": _NOT_ASKED,
        },
    ),
)
