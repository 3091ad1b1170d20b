"""What leads out of a gateway: servers hear what the only client offers, and nothing is left when it ends."""

from __future__ import annotations

from pathlib import Path

from pactgate.config.model import Config
from pactgate.observers import Observers
from pactgate.outgoing import Outgoing, shared_client
from pactgate.sign_ins import SignIns
from pactgate.state.handoffs import MemoryHandoffs
from tests.support.asking import asking, logged
from tests.support.processes import running_children


async def test_a_server_hears_what_the_only_client_offers_and_its_process_ends_with_the_gateway(tmp_path: Path) -> None:
    config, log = Config(), tmp_path / "log"
    client = shared_client(config)
    observers = Observers(config, client, servers=dict, gates=list, embedder=None)
    sign_ins = SignIns(lambda: config, client, MemoryHandoffs(), know=observers.know_tokens, address=lambda: None)
    outgoing = Outgoing(lambda: config, client, sign_ins, observers, client_info={"name": "test"}, owns_process=False)
    dialer = outgoing.dialer(asking(log=log), None)
    outgoing.capabilities = {"roots": {}}
    session = await dialer.dial()
    assert outgoing.child_count == len(running_children()) == 1
    assert logged(log)[0]["params"]["capabilities"] == {"roots": {}}
    await session.peer.close()
    await outgoing.close()
    assert running_children() == []
