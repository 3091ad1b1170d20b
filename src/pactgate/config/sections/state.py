"""The section `state`: what several gateways share, and how they reach each other.

Must not: open a connection. Decision D22: replicas share state through Redis or Valkey; without this section the gateway is alone.
"""

from __future__ import annotations

import re
from base64 import b64decode
from binascii import Error as Base64Error
from collections.abc import Mapping
from contextlib import suppress
from typing import Annotated, Any, Final, Literal

from msgspec import Meta

from pactgate.config import value_checks
from pactgate.config.problems import ConfigFindings, ValueFault
from pactgate.config.sections import Section, doc

KEY_BYTES: Final = 32
KEY_VARIABLE: Final = "PACTGATE_KEY"
_GENERATE: Final = "Generate one with: openssl rand -hex 32."
_HEX: Final = re.compile(r"[0-9a-fA-F]{64}")
_EVERYWHERE: Final = ("0.0.0.0", "::")

check_hop_address: Final = value_checks.check_allowed_host


def read_keys(text: str) -> tuple[bytes, ...]:
    """The keys of one setting or variable, with a comma or space between them; none at all where one of them is no key."""
    keys = [read_key(word) for word in text.replace(",", " ").split()]
    return tuple(key for key in keys if key is not None) if None not in keys else ()


def read_key(text: str) -> bytes | None:
    """The 32 bytes of a key in hexadecimal or base64; None for anything else."""
    if _HEX.fullmatch(text):
        return bytes.fromhex(text)
    with suppress(ValueError, Base64Error):
        key = b64decode(text.translate(str.maketrans("-_", "+/")).rstrip("=") + "=", validate=True)
        return key if len(key) == KEY_BYTES else None
    return None


def check_key(text: str) -> ValueFault | None:
    if not read_keys(text):
        return ValueFault(f"A key has {KEY_BYTES} bytes, in hexadecimal or base64.", _GENERATE)
    return None


def check_store_url(text: str) -> ValueFault | None:
    from urllib.parse import urlsplit  # only configurations with a store need it

    hint = "Write it as redis://host:6379/0, or rediss:// for TLS."
    try:
        parts = urlsplit(text)
        host, port = parts.hostname, parts.port
    except ValueError:
        return ValueFault("The host or port of this store can't be read.", hint)
    if parts.scheme not in ("redis", "rediss", "unix"):
        return ValueFault("This is not the URL of a Redis or Valkey.", hint)
    if parts.scheme != "unix" and (not host or port == 0):
        return ValueFault("This store has no usable host or port.", hint)
    return None


def store_secrets(text: str) -> tuple[str, ...]:
    """The password in a store's URL, as written and as meant."""
    from urllib.parse import unquote, urlsplit

    try:
        password = urlsplit(text).password
    except ValueError:
        return ()
    return (password, unquote(password)) if password else ()


def _each_key(text: str) -> tuple[str, ...]:
    """What is masked: the keys as written, one by one."""
    return tuple(text.replace(",", " ").split())


StoreUrl = Annotated[
    str, Meta(min_length=1, max_length=2000, extra={"expand": True, "secret": store_secrets, "check": check_store_url})
]
Key = Annotated[
    str, Meta(min_length=1, max_length=400, extra={"expand": True, "secret": _each_key, "check": check_key})
]
HopAddress = Annotated[str, Meta(max_length=255, extra={"expand": True, "check": check_hop_address})]
StorePolicy = Literal["local", "refuse"]


class HopSection(Section, frozen=True, kw_only=True):
    """Where other replicas reach this one, to hand over requests that it owns. Clients never use this address."""

    host: Annotated[
        str, doc("Address to listen on.", min_length=1, max_length=255, extra={"check": value_checks.check_host})
    ] = "127.0.0.1"
    port: Annotated[int, doc("Port to listen on; 0 takes a free one.", ge=0, le=65535)] = 0
    advertise: Annotated[
        HopAddress | None,
        doc(
            "What the other replicas connect to, as `10.0.0.5` or `${POD_IP}`, with or without a port. Default: `host`."
        ),
    ] = None


class StoreFailureSection(Section, frozen=True, kw_only=True):
    """What happens while the store can't be reached. The result cache answers nothing then; open sessions go on."""

    rates: Annotated[
        StorePolicy,
        doc("`local`: each replica applies the rate limits by itself; `refuse`: calls that have a rate limit fail."),
    ] = "local"
    single_use: Annotated[
        StorePolicy,
        doc(
            "`local`: each replica makes sure by itself that a requestState is used once; `refuse`: continuing a call "
            "that asked for input fails until the store is back."
        ),
    ] = "refuse"


class StateSection(Section, frozen=True, kw_only=True):
    """What replicas of the gateway share. Without `url` and `key` the gateway is the only one."""

    url: Annotated[
        StoreUrl | None,
        doc("Redis or Valkey, as `redis://user:password@host:6379/0`; `rediss://` for TLS. Needs `key`."),
    ] = None
    key_prefix: Annotated[
        str, doc("What the names of all keys begin with.", min_length=1, max_length=64, pattern="^[A-Za-z0-9_.:-]+$")
    ] = "pactgate"
    key: Annotated[
        Key | None,
        doc(
            "32 bytes in hexadecimal or base64, the same for all replicas; everything shared is sealed with it. Older "
            "keys may follow, after a comma. Default: the variable `PACTGATE_KEY`."
        ),
    ] = None
    previous_key: Annotated[
        Key | None, doc("The key before this one. What it sealed can still be opened: change keys in two steps.")
    ] = None
    hop: HopSection = HopSection()
    on_failure: StoreFailureSection = StoreFailureSection()

    @property
    def is_shared(self) -> bool:
        """Whether other replicas open what this one seals."""
        return self.key is not None


def check_state(state: Mapping[str, Any], found: ConfigFindings) -> None:
    """Check what belongs together. `state` has the values that are valid by themselves."""
    if not state:
        return
    if state.get("key") is None and (state.get("url") is not None or state.get("previousKey") is not None):
        found.add(("state", "key"), "Replicas need a key they share.", f"Set {KEY_VARIABLE}. {_GENERATE}")
    if state.get("url") is None:
        for name in ("hop", "onFailure", "keyPrefix"):
            if name in state:
                found.add(("state", name), f"{name} has no effect without url.", "Add url, or remove it.")
        return
    hop = state.get("hop", {})
    if hop.get("host") in _EVERYWHERE and hop.get("advertise") is None:
        hint = "Add advertise, as ${POD_IP}: the other replicas need an address to connect to."
        found.add(("state", "hop", "host"), "Nobody can connect to the address of every interface.", hint)


def warn_of_state(state: Mapping[str, Any], found: ConfigFindings) -> None:
    """Say what replicas can't do without a store."""
    if state.get("key") is not None and state.get("url") is None:
        hint = "Add state.url, or let the balancer send each client to one replica."
        found.warn(("state",), f"Replicas without a store can't share {', '.join(NEEDS_STORE)}.", hint)


NEEDS_STORE: Final = (
    "legacy sessions",
    "questions of legacy servers to modern clients",
    "results in pages",
    "tasks",
    "rate limits",
    "single use of a requestState",
)
"""What works on one replica only, where replicas have a key and no store."""
