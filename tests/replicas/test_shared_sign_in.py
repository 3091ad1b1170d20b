"""One sign-in at a server is that of all replicas: each uses it, one of them renews it, and its end is felt everywhere."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from pactgate.config.load import load
from pactgate.sign_ins import credential_store
from pactgate.upstreams.oauth.stored_grants import StoredGrants
from tests.journeys.test_sign_in import log_in, run
from tests.replicas.cluster import Cluster
from tests.support.eventually import eventually_blocking
from tests.support.plain_requests import modern
from tests.support.redis_server import RedisServer, needs_redis
from tests.support.sign_in_server import sign_in_server

pytestmark = [pytest.mark.interop, needs_redis, pytest.mark.timeout(120)]


def act(address: str) -> dict[str, Any]:
    body = modern(address, "tools/call", {"name": "vault__act", "arguments": {}})
    result: dict[str, Any] = body.get("result") or body["error"]
    return result


def test_one_sign_in_serves_every_replica_and_one_of_them_renews_it(redis: RedisServer, tmp_path: Path) -> None:
    with sign_in_server() as server:
        cluster, config = Cluster(tmp_path, {"vault": {"url": server.url}}, store=redis.url), tmp_path / "pactgate.json"
        log_in(config)
        assert not list(tmp_path.glob("*.credentials*")), "there is no file of credentials beside the store"
        store = credential_store(load(config, environ={}))
        assert store is not None
        with cluster:
            assert not any(act(address).get("isError") for address in cluster.addresses)
            stored = StoredGrants(store, "vault", server.url).read()
            assert stored is not None
            older = replace(stored.grant, signed_in_at=stored.grant.signed_in_at - 60)
            StoredGrants(store, "vault", server.url).write(older)
            with server.lock:
                server.tokens.clear()
            with ThreadPoolExecutor(12) as pool:
                answers = list(pool.map(act, cluster.addresses * 4))
            assert [answer for answer in answers if answer.get("isError")] == []
            assert len(server.refreshes) == 1
            assert run(config, "logout", "vault").returncode == 0
            eventually_blocking(lambda: all(act(address).get("isError") for address in cluster.addresses))
            assert "pactgate login vault" in str(act(cluster.addresses[2]))
