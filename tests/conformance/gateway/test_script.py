"""Each server has names of its own."""

from __future__ import annotations

from pactgate.conformance.gateway.script import ScriptedTool


def test_a_definition_has_the_name_of_its_server_and_the_members_as_written() -> None:
    assert ScriptedTool(name="t_@", members='"x":1.0').definition("lh") == '{"name":"t_lh","x":1.0}'
