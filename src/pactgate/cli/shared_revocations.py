"""Tells the store that replicas share which API keys a command has revoked: a gateway need not run here, and none has to look first.

Where the store can't be told, a gateway that reads the file tells it later. Must not: fail; the file says that the key is revoked.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

from pactgate.cli import terminal
from pactgate.cli.config_file import InvalidConfigError, load_config
from pactgate.config.sections.state import StateSection
from pactgate.state.key_file import KeyRing


def share_revoked(config: Path, ring: KeyRing) -> None:
    try:
        state = load_config(config, only=("state",)).state
    except InvalidConfigError as error:
        trouble = "; ".join(f"{problem.message} {problem.hint}".strip() for problem in error.problems)
    else:
        if state.url is None:
            return
        trouble = asyncio.run(_share(state, state.url, ring))
    if trouble:
        terminal.warning(
            f"The shared store could not be told: {trouble} A gateway that runs with this file tells it when it can; until then "
            "replicas with files of their own accept the key."
        )


async def _share(state: StateSection, url: str, ring: KeyRing) -> str:
    """What went wrong, if anything did."""
    from pactgate.state.owned_ids import new_replica_id  # 100 ms with cryptography and redis: for those who share
    from pactgate.state.replica_set import ReplicaSet
    from pactgate.state.sealing_keys import keys_of
    from pactgate.state.shared_store import SharedStore

    store = SharedStore(url, state.key_prefix, lambda event: None)
    replicas = ReplicaSet(store, keys_of(state), new_replica_id(), lambda event: None)
    replicas.revoked.publish(ring.revoked)
    await replicas.look()
    trouble = "" if replicas.is_fresh else f"{store.trouble}." if store.trouble else "Its answer can't be read."
    await store.close()
    return trouble
