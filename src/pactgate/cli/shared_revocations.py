"""Tells the store that replicas share which API keys a command has revoked, and asks it which others have: a gateway need not run here.

Where the store can't be told, a gateway that reads the file tells it later. Must not: fail; the file says that the key is revoked.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from pathlib import Path

from pactgate.cli import terminal
from pactgate.cli.config_file import InvalidConfigError, load_config
from pactgate.config.sections.state import StateSection
from pactgate.state.key_file import KeyRing


def share_revoked(config: Path, ring: KeyRing) -> None:
    state, trouble = _state_of(config)
    if state is not None and state.url is not None:
        trouble = asyncio.run(_share(state, state.url, ring))
    if trouble:
        terminal.warning(
            f"The shared store could not be told: {trouble} A gateway that runs with this file tells it when it can; until then "
            "replicas with files of their own accept the key."
        )


def ends_elsewhere(config: Path, ids: Iterable[str]) -> dict[str, int]:
    """When those keys end that some machine has revoked (0: at once) or rotated, as the store knows; says where it can't be asked."""
    state, trouble = _state_of(config)
    found: dict[str, int] = {}
    if state is not None and state.url is not None:
        trouble = asyncio.run(_ask(state, state.url, ids, found))
    if trouble:
        terminal.warning(f"The shared store could not be asked which keys other machines have revoked: {trouble}")
    return found


def _state_of(config: Path) -> tuple[StateSection | None, str]:
    """The section of the configuration, or what is wrong with it."""
    try:
        return load_config(config, only=("state",)).state, ""
    except InvalidConfigError as error:
        return None, "; ".join(f"{problem.message} {problem.hint}".strip() for problem in error.problems)


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


async def _ask(state: StateSection, url: str, ids: Iterable[str], found: dict[str, int]) -> str:
    """What went wrong, if anything did."""
    from pactgate.state.revoked_keys import RevokedKeys  # as above
    from pactgate.state.sealing_keys import keys_of
    from pactgate.state.shared_store import SharedStore, StoreUnavailableError

    store = SharedStore(url, state.key_prefix, lambda event: None)
    revoked = RevokedKeys(store, keys_of(state))
    try:
        await store.probe()
        await revoked.exchange(born_at=0.0, epoch=0)
    except StoreUnavailableError:
        return f"{store.trouble}."
    finally:
        await store.close()
    found.update((id_, ends) for id_ in ids if (ends := revoked.end_of(id_)) is not None)
    return ""
