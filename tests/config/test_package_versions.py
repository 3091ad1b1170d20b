"""A package without a version is named, and one with a version, or a local one, is not."""

from __future__ import annotations

import pytest

from pactgate.config.package_versions import unpinned_package


@pytest.mark.parametrize(
    ("line", "package"),
    [
        ("npx -y @modelcontextprotocol/server-filesystem /data", "@modelcontextprotocol/server-filesystem"),
        ("npx -y @modelcontextprotocol/server-filesystem@2025.8.21 /data", None),
        ("npx -y crm@latest", "crm@latest"),
        ("npx --package=crm@1.2.3 crm", None),
        ("npx -p crm crm-server", "crm"),
        ("npx ./server.js", None),
        ("/usr/bin/npx", None),
        ("bunx crm", "crm"),
        ("uvx mcp-server-time --local-timezone UTC", "mcp-server-time"),
        ("uvx mcp-server-time@1.0.2", None),
        ("uvx mcp-server-time==1.0.2", None),
        ("uvx --from crm==1 crm", None),
        ("uvx --python 3.12 crm", "crm"),
        ("docker run -i --rm -e TOKEN crm/server", "crm/server"),
        ("docker run -i --rm -e TOKEN crm/server:latest", "crm/server:latest"),
        ("docker run -i --env=TOKEN host:5000/crm:1.2 --x", None),
        ("podman run crm@sha256:0123", None),
        ("docker compose up", None),
        ("python server.py", None),
    ],
)
def test_the_package_without_a_version_is_found(line: str, package: str | None) -> None:
    command, *args = line.split()
    assert unpinned_package(command, args) == package
