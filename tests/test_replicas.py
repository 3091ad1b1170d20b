"""What several gateways share is wired where the configuration says so, and costs nothing elsewhere."""

from __future__ import annotations

import json
import subprocess
import sys

from pactgate.config.model import Config
from pactgate.config.sections.state import NEEDS_STORE, StateSection
from pactgate.replicas import KeyedReplicas, Replicas, replicas_of
from pactgate.state.memory_cache import MemoryCache
from pactgate.state.memory_rates import MemoryRateStore

KEY = "5e" * 32


def test_one_gateway_alone_imports_nothing_for_it() -> None:
    code = (
        "import asyncio, json, sys\n"
        "from pactgate.app import Gateway\n"
        "from pactgate.config.model import Config, ListenSection\n"
        "async def main():\n"
        "    gateway = Gateway(Config(listen=ListenSection(port=0)), lambda event: None)\n"
        "    await gateway.serve_http()\n"
        "    await gateway.start()\n"
        "    await gateway.stop(0)\n"
        "asyncio.run(main())\n"
        "print(json.dumps([name for name in ('redis', 'cryptography') if name in sys.modules]))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=30, check=True)
    assert json.loads(done.stdout) == []


def test_one_gateway_alone_keeps_everything_in_its_process() -> None:
    alone = replicas_of(Config())
    cache = MemoryCache(Config().cache)
    assert type(alone) is Replicas
    assert alone.cache(cache, lambda server: None) is cache
    assert isinstance(alone.rates(), MemoryRateStore)
    assert alone.use_once is None
    assert alone.on_write is None
    assert alone.facts() is None


def test_replicas_with_a_key_alone_say_what_they_do_not_share() -> None:
    replicas = replicas_of(Config(state=StateSection(key=KEY)))
    assert isinstance(replicas, KeyedReplicas)
    facts = replicas.facts()
    assert facts is not None
    assert facts["store"] is None
    assert facts["notShared"] == list(NEEDS_STORE)
