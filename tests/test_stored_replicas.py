"""What gateways with one store tell each other of themselves."""

from __future__ import annotations

from pactgate.stored_replicas import advertised


def test_the_advertised_address_gets_the_port_that_was_bound_unless_it_has_its_own() -> None:
    assert advertised("10.0.0.5", 7412) == "10.0.0.5:7412"
    assert advertised("10.0.0.5:80", 7412) == "10.0.0.5:80"
    assert advertised("gateway-0.gateways", 7412) == "gateway-0.gateways:7412"
    assert advertised("fd00::5", 7412) == "[fd00::5]:7412"
    assert advertised("[fd00::5]", 7412) == "[fd00::5]:7412"
    assert advertised("[fd00::5]:80", 7412) == "[fd00::5]:80"
