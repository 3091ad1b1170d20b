"""Several gateways as processes of their own, with one configuration, one Redis, and nginx in front of them in round robin."""

from __future__ import annotations

import json
import os
import shutil
import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.interop.processes import GATEWAY, Program, free_port, listens

KEY = "5e" * 32
NGINX = shutil.which("nginx")
needs_nginx = pytest.mark.skipif(
    NGINX is None and os.environ.get("CI") != "true",
    reason="NOT RUN: nginx is not installed: apt-get install nginx-light",
)

_NGINX = """
daemon off; master_process off; pid {folder}/nginx.pid; error_log stderr error;
events {{ worker_connections 2048; }}
http {{
  access_log off;
  client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy; fastcgi_temp_path {folder}/f;
  uwsgi_temp_path {folder}/u; scgi_temp_path {folder}/s;
  client_max_body_size 16m;
  upstream gateways {{ {servers} }}
  server {{
    listen 127.0.0.1:{port};
    location / {{
      proxy_pass http://gateways;
      proxy_http_version 1.1;
      proxy_set_header Host $http_host;
      proxy_set_header Connection "";
      proxy_buffering off; proxy_request_buffering off; proxy_read_timeout 1h;
      proxy_next_upstream error timeout;
    }}
  }}
}}
"""


class Cluster:
    """`count` gateways with the same configuration. `address` is that of nginx, `addresses` are their own."""

    def __init__(
        self,
        folder: Path,
        servers: Mapping[str, Any],
        *,
        store: str | None,
        count: int = 3,
        state: Mapping[str, Any] | None = None,
        settings: Mapping[str, Any] | None = None,
        under: Sequence[Sequence[str]] = (),
    ) -> None:
        """`under`: for each gateway, the words of the program that runs it."""
        self._folder = folder
        self._under = under or [()] * count
        self._config = folder / "pactgate.json"
        shared: dict[str, Any] = {"key": KEY, **({"url": store} if store else {}), **(state or {})}
        defaults: dict[str, Any] = {"rateLimits": {"enabled": False}, "state": shared}
        self._config.write_text(json.dumps({"mcpServers": servers, **defaults, **(settings or {})}))
        self.ports = [free_port() for _ in range(count)]
        self.programs: list[Program] = []
        self._nginx: Program | None = None
        self.address = ""

    @property
    def addresses(self) -> list[str]:
        return [f"http://127.0.0.1:{port}" for port in self.ports]

    def __enter__(self) -> Cluster:
        for number, (port, under) in enumerate(zip(self.ports, self._under, strict=True)):
            command = [*under, *GATEWAY, "serve", "--config", str(self._config), "--port", str(port)]
            self.programs.append(Program(command, self._folder / f"gateway{number}.log"))
        for port, program in zip(self.ports, self.programs, strict=True):
            program.wait_until(lambda port=port: listens(port) and self._is_ready(port), "it is ready")  # type: ignore[misc]
        return self

    def __exit__(self, *_: object) -> None:
        for program in (*self.programs, *((self._nginx,) if self._nginx else ())):
            program.stop()

    def balance(self) -> str:
        """Start nginx; the address clients use."""
        port = free_port()
        servers = " ".join(f"server 127.0.0.1:{one} max_fails=1 fail_timeout=5s;" for one in self.ports)
        conf = self._folder / "nginx.conf"
        conf.write_text(_NGINX.format(folder=self._folder, port=port, servers=servers))
        assert NGINX is not None
        self._nginx = Program([NGINX, "-p", self._folder, "-c", conf], self._folder / "nginx.log")
        self._nginx.wait_until(lambda: listens(port), "nginx listens")
        self.address = f"http://127.0.0.1:{port}"
        return self.address

    def kill(self, number: int) -> None:
        """It is gone at once, and has no time to say so."""
        self.programs[number].process.kill()
        self.programs[number].process.wait(10)

    def health(self, number: int) -> dict[str, Any]:
        return health_at(self.addresses[number])

    def log(self, number: int) -> str:
        return (self._folder / f"gateway{number}.log").read_text()

    def _is_ready(self, port: int) -> bool:
        health = health_at(f"http://127.0.0.1:{port}")
        shared = health.get("state") or {}
        has_all = shared.get("store") is None or shared.get("replicas") == len(self.ports)
        return health["status"] == "ok" and has_all


def health_at(address: str) -> dict[str, Any]:
    with urllib.request.urlopen(f"{address}/health", timeout=5) as response:
        found: dict[str, Any] = json.loads(response.read())
        return found
