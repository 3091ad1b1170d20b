"""Checks of single strings beyond type and length: ids, program arguments, URLs, paths, header fields, tokens.

Each check takes one string and returns a `ValueFault` or None. Pure. Must not: resolve anything, or repeat a value that may be a
secret; ids and names can't be. Enforces S4/F4 and the bounds of a server's configuration (S0). A path template can't lead
anywhere but below its base URL.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from pactgate.config.problems import ValueFault, show
from pactgate.protocol.versions import is_foreign

SERVER_ID: Final = r"^[a-z][a-z0-9-]*$"
SERVER_ID_MAX: Final = 50
OWN_SERVER_ID: Final = "pactgate"
TOKEN_MIN: Final = 16
PLACEHOLDER: Final = re.compile(r"\{([^{}/]{1,200})\}")

_HEADER_NAME: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_VISIBLE: Final = re.compile(r"[\x21-\x7e]*")
_OWN_HEADERS: Final = frozenset(
    {"connection", "content-length", "expect", "host", "keep-alive", "last-event-id", "proxy-connection"}
    | {"te", "trailer", "transfer-encoding", "upgrade"}
)
_LITERAL: Final = re.compile(r"(?:[A-Za-z0-9._~!$&'()*+,;=:@/-]|%[0-9A-Fa-f]{2})*")
_HIDDEN_BREAK: Final = re.compile(r"%(?:2f|5c|00|0a|0d)", re.IGNORECASE)
_DOTS: Final = re.compile(r"(?:\.|%2e){1,2}", re.IGNORECASE)


def _pattern_check(pattern: str, message: str, hint: str) -> Callable[[str], ValueFault | None]:
    """A check that the whole string matches. `{}` in the message stands for the string."""
    compiled = re.compile(pattern)

    def check(text: str) -> ValueFault | None:
        return None if compiled.fullmatch(text) else ValueFault(message.format(show(text)), hint)

    return check


check_host: Final = _pattern_check(
    r"[A-Za-z0-9._-]+|[0-9A-Fa-f:.]+(?:%[A-Za-z0-9._-]+)?",
    "{} is not an address to listen on.",
    "Write 127.0.0.1, ::1, 0.0.0.0 or a name, without port.",
)
check_allowed_host: Final = _pattern_check(
    r"(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(?::[0-9]{1,5})?",
    "{} is not a Host name.",
    "Write gateway.example or gateway.example:8080.",
)
check_origin: Final = _pattern_check(
    r"[A-Za-z][A-Za-z0-9+.-]*://(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(?::[0-9]{1,5})?",
    "{} is not an origin.",
    "Write https://app.example, without a path.",
)
check_egress_host: Final = _pattern_check(
    r"(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(?::[0-9]{1,5})?|[0-9A-Fa-f:.]+",
    "{} is not a host.",
    "Write a name or an address, with a port that is not the default one, and without scheme.",
)
check_media_type: Final = _pattern_check(
    r"[A-Za-z0-9!#$&^_.+-]+/[A-Za-z0-9!#$&^_.+*-]+(?:\s*;\s*[A-Za-z0-9_.-]+=[\x21-\x7e ]+)?",
    "{} is not a media type.",
    "Write it as application/json.",
)
check_argument: Final = _pattern_check(
    r"[^\x00]*", "A command line can't have a NUL.", "Remove it; no shell reads this."
)
_check_line: Final = _pattern_check(r"[^\x00\r\n]*", "A path can't have a line break or NUL.", "Remove it.")
check_env_value: Final = _pattern_check(r"[^\x00]*", "An environment variable can't have a NUL.", "Remove it.")
check_header_value: Final = _pattern_check(
    r"(?:[\x21-\x7e](?:[\x20-\x7e\t]*[\x21-\x7e])?)?",
    "The value of a header is visible ASCII, without line breaks or spaces around it.",
    "Look for a line break at the end of the variable it comes from.",
)


def is_server_id(text: str) -> bool:
    return re.fullmatch(SERVER_ID, text) is not None and len(text) <= SERVER_ID_MAX


def check_server_id(text: str) -> ValueFault | None:
    if text == OWN_SERVER_ID:
        return ValueFault(f"{show(text)} is the gateway's own id.", "Choose another.")
    if is_server_id(text):
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


def check_program(text: str) -> ValueFault | None:
    if not text.strip():
        return ValueFault("This is empty.", "Name a program or folder.")
    if text.startswith("~"):
        return ValueFault("~ is not expanded, because no shell reads this.", "Write ${HOME} instead.")
    return _check_line(text)


def check_env_name(text: str) -> ValueFault | None:
    if not text or "=" in text or not text.isprintable():
        return ValueFault(f"{show(text)} can't be the name of an environment variable.", "Use letters, digits and _.")
    return None


def check_extension(text: str) -> ValueFault | None:
    if not _VISIBLE.fullmatch(text) or "/" not in text:
        return ValueFault(
            f"{show(text)} is not a method or a pattern of methods.", "Write com.example/do, or com.example/*."
        )
    if not is_foreign(text):
        return ValueFault(f"{show(text)} is a method of the protocol, which needs no permission here.", "Remove it.")
    return None


def check_header_name(text: str) -> ValueFault | None:
    if not _HEADER_NAME.fullmatch(text):
        return ValueFault(f"{show(text)} can't be the name of a header.", "Use letters, digits and hyphens.")
    if text.casefold() in _OWN_HEADERS or text.casefold().startswith("mcp-"):
        return ValueFault(f"The header {show(text)} is written by the gateway itself.", "Remove it.")
    return None


def check_token(text: str) -> ValueFault | None:
    hint = "Generate one with: openssl rand -hex 32."
    if len(text) < TOKEN_MIN:
        return ValueFault(f"A token has at least {TOKEN_MIN} characters.", hint)
    return None if _VISIBLE.fullmatch(text) else ValueFault("A token is visible ASCII without spaces.", hint)


def check_url(text: str) -> ValueFault | None:
    """A URL the gateway may call. Only the text is checked: nothing is resolved."""
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


def check_base_url(text: str) -> ValueFault | None:
    """A URL below which paths are called: no query, no dot segments."""
    if (fault := check_url(text)) is not None:
        return fault
    if "?" in text:
        return ValueFault("A base URL has no query.", "Write query parameters under parameters.")
    path = text.partition("://")[2].partition("/")[2]
    if not _LITERAL.fullmatch(path):
        return ValueFault("A base URL has no placeholders.", "Write the path out.")
    return _check_segments(path)


def check_path_template(text: str) -> ValueFault | None:
    """A path with `{placeholders}`."""
    if not text.startswith("/"):
        return ValueFault(f"{show(text)} is not a path.", "Begin it with a slash.")
    if text.startswith("//"):
        return ValueFault("A path that begins with two slashes names a host.", "Begin it with one.")
    literal = PLACEHOLDER.sub("x", text)
    if not _LITERAL.fullmatch(literal):
        return ValueFault(
            f"{show(text)} has characters that are not allowed in a path.",
            "Percent-encode them; queries belong under parameters, and {name} has no braces inside.",
        )
    names = PLACEHOLDER.findall(text)
    if len(names) != len(set(names)):
        return ValueFault("This path has one placeholder twice.", "Give each its own name.")
    return _check_segments(literal)


def _check_segments(path: str) -> ValueFault | None:
    if any(_DOTS.fullmatch(segment) for segment in path.split("/")) or _HIDDEN_BREAK.search(path):
        return ValueFault("A path here has no dot segments and no encoded slashes.", "Write the resulting path.")
    return None


def check_network(text: str) -> ValueFault | None:
    """An address or a network of addresses. The whole internet is none: it would believe what any client says."""
    from ipaddress import ip_network

    try:
        network = ip_network(text)
    except ValueError:
        return ValueFault(f"{show(text)} is not an address or a network.", "Write it as 192.0.2.1 or 10.0.0.0/8.")
    if network.prefixlen == 0:
        return ValueFault("Every client could say that it is another one.", "Name the network of the proxy alone.")
    return None


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address. A name other than localhost is not trusted to be one."""
    if host.casefold() == "localhost":
        return True
    # Imported here: most configurations listen on the default address.
    from ipaddress import ip_address

    try:
        return ip_address(host.partition("%")[0]).is_loopback
    except ValueError:
        return False
