"""Every dialect writes a configuration that names the servers it can carry, and the command line offers it."""

from __future__ import annotations

import pytest

from pactgate.cli.compliance_gateway import DIALECT_NAMES
from pactgate.conformance.gateway.dialects import DIALECTS, GatewayDialect
from pactgate.conformance.gateway.fleet import SERVERS

ENTRIES = {
    kind.id: {"url": f"http://127.0.0.1:1/{tag}"}
    if kind.transport == "http"
    else {"command": "run", "args": ["it", tag]}
    for tag, kind in SERVERS.items()
}


@pytest.mark.parametrize("dialect", DIALECTS.values(), ids=lambda dialect: dialect.name)
def test_a_configuration_names_each_server_that_the_gateway_can_carry(dialect: GatewayDialect) -> None:
    tags = SERVERS if dialect.carries is None else dialect.carries
    written = dialect.write({SERVERS[tag].id: ENTRIES[SERVERS[tag].id] for tag in tags})
    for tag in tags:
        place = f"http://127.0.0.1:1/{tag}" if SERVERS[tag].transport == "http" else tag
        assert place in written
    assert (dialect.carries is None) is (dialect.why == "")


def test_the_command_line_offers_every_dialect() -> None:
    assert set(DIALECT_NAMES) == set(DIALECTS)
