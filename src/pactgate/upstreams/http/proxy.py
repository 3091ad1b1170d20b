"""Which proxy a request goes through, if any: the setting `proxy` of its server, else the environment, as other tools read it.

`http_proxy`, `https_proxy`, `all_proxy` and `no_proxy` count in lower and upper case, lower case first. `HTTP_PROXY` in upper case does not
count in a CGI program (`REQUEST_METHOD` is set): there a client sets it by sending the header `Proxy`. Loopback addresses never go through
a proxy, because they mean another machine there. Pure. Must not: connect, or show the credentials of a proxy.
"""

from __future__ import annotations

import base64
import os
from collections.abc import Mapping
from ipaddress import IPv4Address, IPv6Address, ip_network
from typing import Final
from urllib.parse import unquote, urlsplit

from msgspec import Struct

from pactgate.config.sections.network import NO_PROXY, TlsSettings, check_proxy, split_proxy
from pactgate.config.server_settings import ServerConfig
from pactgate.core.failures import GatewayFailure, Kind
from pactgate.upstreams.http.addresses import address_of

_DEFAULT_PORTS: Final = {"http": 80, "https": 443}

_SHARE_OF_CONNECTING: Final = 0.9
"""Less than all of `connectionTimeoutMs`, so that the failure that names the proxy comes before the general one."""


class Proxy(Struct, frozen=True, kw_only=True):
    """An HTTP proxy. `source` says where it was configured; `authorization` is a whole header line, or empty."""

    scheme: str
    host: str
    port: int
    source: str
    authorization: bytes = b""

    @property
    def is_tls(self) -> bool:
        return self.scheme == "https"

    def __str__(self) -> str:
        """For messages: where it is, without credentials."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{self.port}"

    def __repr__(self) -> str:
        return f"Proxy({self})"


class NetworkSettings(Struct, frozen=True, kw_only=True):
    """How the targets of one server are reached. The default is directly, with the system's certificate authorities."""

    proxy: str | None = None
    tls: TlsSettings | None = None
    environ: Mapping[str, str] = {}
    proxy_timeout_s: float | None = None
    """How long connecting through a proxy may take; None: as long as any other connection."""

    def proxy_for(self, server: str, scheme: str, host: str, port: int) -> Proxy | None:
        """The proxy for one origin. Raises an INVALID_CONFIG failure if the one configured can't be used."""
        source, url = f"`proxy` of {server}", self.proxy
        if url is None:
            source, url = _from_environment(scheme, self.environ)
            if url and _is_excepted(_one_of(self.environ, "no_proxy", "NO_PROXY")[1], host, port):
                return None
        if not url or url == NO_PROXY or _is_loopback(host):
            return None
        return _parse(server, source, url)


DIRECT: Final = NetworkSettings()


def network_of(config: ServerConfig, environ: Mapping[str, str] | None = None) -> NetworkSettings:
    """How a server is reached: by its own settings, and by the environment of the gateway."""
    return NetworkSettings(
        proxy=config.proxy,
        tls=config.tls,
        environ=os.environ if environ is None else environ,
        proxy_timeout_s=config.connection_timeout_ms / 1000 * _SHARE_OF_CONNECTING,
    )


def route_of(config: ServerConfig, environ: Mapping[str, str] | None = None) -> tuple[Proxy | None, str]:
    """The proxy of a server and a sentence about it for people; an empty one where no proxy is configured at all."""
    network = network_of(config, environ)
    parts = urlsplit(config.address or "")
    port = parts.port or _DEFAULT_PORTS.get(parts.scheme, 0)
    proxy = network.proxy_for(config.id, parts.scheme, parts.hostname or "", port)
    if proxy is not None:
        return proxy, f"called through the proxy {proxy} ({proxy.source})"
    variable, url = _from_environment(parts.scheme, network.environ)
    return None, f"called directly, not through the proxy in {variable}" if url else ""


def credentials_refused(proxy: Proxy, server: str) -> GatewayFailure:
    """HTTP 407: from the proxy itself, which has passed nothing on."""
    what = "refused the credentials in its URL" if proxy.authorization else "asks for credentials"
    return GatewayFailure(
        Kind.CONNECTION_FAILED,
        f"{server} can't be reached: the proxy {proxy} {what} (HTTP 407). Write them as http://user:password@host:port "
        f"in {proxy.source}; only Basic authentication is supported.",
        server=server,
        details={"permanent": True},
    )


def _from_environment(scheme: str, environ: Mapping[str, str]) -> tuple[str, str]:
    names = [f"{scheme}_proxy", f"{scheme.upper()}_PROXY", "all_proxy", "ALL_PROXY"]
    if "REQUEST_METHOD" in environ and scheme == "http":
        names.remove("HTTP_PROXY")
    return _one_of(environ, *names)


def _one_of(environ: Mapping[str, str], *names: str) -> tuple[str, str]:
    """The first variable that is set, with its value. One that is set and empty hides those after it."""
    return next(((name, environ[name].strip()) for name in names if name in environ), ("", ""))


def _parse(server: str, source: str, url: str) -> Proxy:
    fault = check_proxy(url)
    if fault is not None:
        raise GatewayFailure(
            Kind.INVALID_CONFIG,
            f"The proxy in {source} can't be used: {fault.message} {fault.hint}",
            server=server,
            details={"permanent": True},
        )
    parts = split_proxy(url)
    assert parts.hostname is not None
    line = b""
    if parts.username is not None:
        user, password = unquote(parts.username), unquote(parts.password or "")
        line = b"Proxy-Authorization: Basic %b\r\n" % base64.b64encode(f"{user}:{password}".encode())
    return Proxy(
        scheme=parts.scheme,
        host=parts.hostname,
        port=parts.port or _DEFAULT_PORTS[parts.scheme],
        source=source,
        authorization=line,
    )


def _is_loopback(host: str) -> bool:
    name = host.rstrip(".").lower()
    address = _address(name)
    return name == "localhost" or name.endswith(".localhost") or (address is not None and address.is_loopback)


def _is_excepted(no_proxy: str, host: str, port: int) -> bool:
    """Whether `NO_PROXY` names a host. `example.com`, `.example.com` and `*.example.com` all name the host and all below it."""
    name = host.rstrip(".").lower()
    address = _address(name)
    return any(_names(entry.lower(), name, address, port) for entry in no_proxy.replace(",", " ").split())


def _names(entry: str, name: str, address: IPv4Address | IPv6Address | None, port: int) -> bool:
    if entry == "*":
        return True
    if "/" in entry:
        try:
            return address is not None and address in ip_network(entry, strict=False)
        except ValueError:
            return False
    wanted, only_port = _split_port(entry)
    if only_port is not None and only_port != port:
        return False
    if address is not None:
        return _address(wanted) == address
    wanted = wanted.removeprefix("*").strip(".")
    return bool(wanted) and (name == wanted or name.endswith(f".{wanted}"))


def _split_port(entry: str) -> tuple[str, int | None]:
    """`host:8080` and `[::1]:8080`, with the port apart. An IPv6 address without brackets has no port."""
    if entry.startswith("["):
        host, _, rest = entry[1:].partition("]")
        port = rest.removeprefix(":")
    elif entry.count(":") == 1:
        host, _, port = entry.partition(":")
    else:
        return entry, None
    return host, int(port) if port.isdecimal() else None


def _address(text: str) -> IPv4Address | IPv6Address | None:
    address = address_of(text)
    return (address.ipv4_mapped or address) if isinstance(address, IPv6Address) else address
