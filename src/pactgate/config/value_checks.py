"""What a single value must be beyond its type and length: ids, program arguments, URLs, header fields, tokens.

Each check takes one text and returns a `ValueFault` or None. Pure. Must not: repeat the value, which may hold a secret; ids and
names, which can't, are the exception. Enforces S4/F4 and the bounds of a server's configuration (S0).
"""

from __future__ import annotations

import re
from typing import Final

from pactgate.config.problems import ValueFault, show

SERVER_ID: Final = r"^[a-z][a-z0-9-]*$"
SERVER_ID_MAX: Final = 50
OWN_SERVER_ID: Final = "pactgate"
TOKEN_MIN: Final = 16

_ARGV_BREAKER: Final = re.compile(r"[\x00\r\n]")
_HEADER_NAME: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_HEADER_VALUE: Final = re.compile(r"(?:[\x21-\x7e](?:[\x20-\x7e\t]*[\x21-\x7e])?)?")
_VISIBLE: Final = re.compile(r"[\x21-\x7e]*")
_OWN_HEADERS: Final = frozenset(
    {"connection", "content-length", "expect", "host", "keep-alive", "last-event-id", "proxy-connection"}
    | {"te", "trailer", "transfer-encoding", "upgrade"}
)
_HOST: Final = re.compile(r"[A-Za-z0-9._-]+|[0-9A-Fa-f:.]+(?:%[A-Za-z0-9._-]+)?")
_ALLOWED_HOST: Final = re.compile(r"(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(?::[0-9]{1,5})?")
_ORIGIN: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(?::[0-9]{1,5})?")


def check_server_id(text: str) -> ValueFault | None:
    if text == OWN_SERVER_ID:
        return ValueFault(f"{show(text)} is the gateway's own id.", "Choose another.")
    if re.fullmatch(SERVER_ID, text) and len(text) <= SERVER_ID_MAX:
        return None
    return ValueFault(
        f"{show(text)} can't be the id of a server: ids have 1 to {SERVER_ID_MAX} letters a-z, digits and hyphens, a letter first.",
        f"Call it {show(legal_id(text))}.",
    )


def legal_id(text: str) -> str:
    """The nearest id that may be used."""
    words = re.sub(r"[^a-z0-9]+", "-", text[:200].casefold()).strip("-")
    words = re.sub(r"^[^a-z]+", "", words) or (f"server-{words}" if words else "server")
    legal = words[:SERVER_ID_MAX].rstrip("-")
    return f"{legal}-server" if legal == OWN_SERVER_ID else legal


def check_argument(text: str) -> ValueFault | None:
    if _ARGV_BREAKER.search(text):
        return ValueFault(
            "A line break or NUL can't be part of a command line.", "Remove it; no shell reads these texts."
        )
    return None


def check_program(text: str) -> ValueFault | None:
    if not text.strip():
        return ValueFault("This is empty.", "Name a program or folder.")
    if text.startswith("~"):
        return ValueFault("~ is not expanded, because no shell reads this.", "Write ${HOME} instead.")
    return check_argument(text)


def check_env_name(text: str) -> ValueFault | None:
    if not text or "=" in text or not text.isprintable():
        return ValueFault(f"{show(text)} can't be the name of an environment variable.", "Use letters, digits and _.")
    return None


def check_env_value(text: str) -> ValueFault | None:
    if "\x00" in text:
        return ValueFault("NUL can't be part of an environment variable.", "Remove it.")
    return None


def check_header_name(text: str) -> ValueFault | None:
    if not _HEADER_NAME.fullmatch(text):
        return ValueFault(f"{show(text)} can't be the name of a header.", "Use letters, digits and hyphens.")
    if text.casefold() in _OWN_HEADERS or text.casefold().startswith("mcp-"):
        return ValueFault(f"The header {show(text)} is written by the gateway itself.", "Remove it.")
    return None


def check_header_value(text: str) -> ValueFault | None:
    if not _HEADER_VALUE.fullmatch(text):
        return ValueFault(
            "The value of a header is visible ASCII, without line breaks or spaces around it.",
            "Look for a line break at the end of the variable it comes from.",
        )
    return None


def check_url(text: str) -> ValueFault | None:
    """A URL we may call as it stands. Looks at the text only: nothing is resolved."""
    # Imported here: only configurations with remote servers need it.
    from urllib.parse import urlsplit

    if not _VISIBLE.fullmatch(text) or "\\" in text:
        return ValueFault("A URL has only visible ASCII characters and no backslash.", "Percent-encode the others.")
    try:
        parts = urlsplit(text)
        host, port = parts.hostname, parts.port
    except ValueError:
        return ValueFault("The host or port of this URL can't be read.", "Write it as https://host:port/path.")
    if parts.scheme not in ("http", "https"):
        return ValueFault("This URL is neither http nor https.", "Write it as https://host/path.")
    if not host or port == 0:
        return ValueFault("This URL has no usable host or port.", "Write it as https://host:port/path.")
    if "@" in parts.netloc:
        return ValueFault("This URL has a user or password in it.", "Put credentials in headers, as Authorization.")
    if "#" in text:
        return ValueFault("This URL has a fragment, which is never sent.", "Remove # and what follows.")
    return None


def check_host(text: str) -> ValueFault | None:
    if not _HOST.fullmatch(text):
        return ValueFault(
            f"{show(text)} is not an address to listen on.", "Write 127.0.0.1, ::1, 0.0.0.0 or a name, without port."
        )
    return None


def check_allowed_host(text: str) -> ValueFault | None:
    if not _ALLOWED_HOST.fullmatch(text):
        return ValueFault(f"{show(text)} is not a Host name.", "Write gateway.example or gateway.example:8080.")
    return None


def check_origin(text: str) -> ValueFault | None:
    if not _ORIGIN.fullmatch(text):
        return ValueFault(f"{show(text)} is not an origin.", "Write https://app.example, without a path.")
    return None


def check_token(text: str) -> ValueFault | None:
    if len(text) < TOKEN_MIN:
        return ValueFault(f"A token has at least {TOKEN_MIN} characters.", "Make one with: openssl rand -hex 32.")
    if not _VISIBLE.fullmatch(text):
        return ValueFault(
            "A token has only visible ASCII characters, no spaces.", "Make one with: openssl rand -hex 32."
        )
    return None


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address. A name other than localhost is not trusted to be one."""
    if host.casefold() == "localhost":
        return True
    # Imported here: most configurations listen where the default says, which the caller knows.
    from ipaddress import ip_address

    try:
        return ip_address(host.partition("%")[0]).is_loopback
    except ValueError:
        return False
