"""Finds the credentials an operation of an OpenAPI document needs, and where to send them.

The alternatives of the document are tried in order; the first for which the operator gave all credentials is used. An operation
without such an alternative is skipped. Must not: use a credential the document does not ask for, or show one.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Final
from urllib.parse import quote

from pactgate.config.value_checks import check_header_name
from pactgate.core.display import flat
from pactgate.upstreams.openapi.document_text import DocumentError
from pactgate.upstreams.openapi.references import DocumentNode, References
from pactgate.upstreams.rest.credentials import Credential

_MAX_ALTERNATIVES: Final = 50
_MAX_SCHEMES: Final = 20
_SHOWN_CHARS: Final = 100
_COOKIE_SAFE: Final = "!#$&'()*+-./:<=>?@[]^_`{|}~%"


class Security:
    """The security schemes of one document and the operator's credentials for them."""

    def __init__(
        self, references: References, given: Mapping[str, str], headers: Mapping[str, str], default: DocumentNode
    ) -> None:
        """`headers` are sent anyway: a scheme they already fulfil needs nothing more. `default` is the document's own `security`."""
        self._references = references
        self._given = given
        self._headers = {name.casefold() for name in headers}
        self._default = default
        self._schemes = references.root.inside("components", "securitySchemes")

    @property
    def unknown(self) -> tuple[str, ...]:
        """Credentials for schemes the document does not have."""
        return tuple(name for name in self._given if name not in self._schemes.members())

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._schemes.members())

    def needed(self, operation: DocumentNode) -> tuple[Credential, ...]:
        """The credentials of an operation. Raises DocumentError if the operator did not give them."""
        asked = operation.inside("security")
        asked = asked if isinstance(asked.value, list) else self._default
        alternatives = [one.members() for one in asked.items()[:_MAX_ALTERNATIVES]]
        if not alternatives:
            return ()
        problems: dict[str, None] = {}
        for alternative in sorted(alternatives, key=lambda one: not one):  # no credentials at all is the last resort
            try:
                found = [self._credential(name) for name in list(alternative)[:_MAX_SCHEMES]]
                return tuple(one for one in found if one is not None)
            except DocumentError as problem:
                problems[problem.why] = None
        raise DocumentError(f"it needs {', or '.join(problems)}")

    def _credential(self, name: str) -> Credential | None:
        """The credential for a scheme, None where a configured header already carries it. Raises DocumentError."""
        shown = f"the credential {flat(name, _SHOWN_CHARS)}"
        try:
            scheme = self._references.follow(self._schemes.inside(name))
        except DocumentError as broken:
            raise DocumentError(f"{shown}, which can't be read: {broken.why}") from None
        header = _header_of(scheme)
        if header is not None and header.casefold() in self._headers:
            return None
        value = self._given.get(name)
        if value is None:
            raise DocumentError(f"{shown} ({_kind(scheme)})")
        sent = _sent(scheme, value)
        if sent is None:
            raise DocumentError(f"{shown} ({_kind(scheme)}), which is not supported")
        return sent


def _sent(scheme: DocumentNode, value: str) -> Credential | None:
    """The credential for its scheme; None for unknown schemes."""
    if scheme.text("type") == "apiKey":
        return _key(scheme, value)
    if scheme.text("type") in ("oauth2", "openIdConnect") or _http_scheme(scheme) == "bearer":
        return Credential("header", "Authorization", f"Bearer {value}")
    if _http_scheme(scheme) == "basic":
        return Credential("header", "Authorization", f"Basic {base64.b64encode(value.encode()).decode()}")
    return None


def _key(scheme: DocumentNode, value: str) -> Credential | None:
    name, place = scheme.text("name"), scheme.text("in")
    if name and place == "query":
        return Credential("query", name, value)
    if not name or check_header_name(name) is not None:
        return None
    if place == "header":
        return Credential("header", name, value)
    return Credential("cookie", name, quote(value, safe=_COOKIE_SAFE)) if place == "cookie" else None


def _http_scheme(scheme: DocumentNode) -> str | None:
    return (scheme.text("scheme") or "").casefold() if scheme.text("type") == "http" else None


def _header_of(scheme: DocumentNode) -> str | None:
    if scheme.text("type") == "apiKey":
        return {"header": scheme.text("name"), "cookie": "Cookie"}.get(scheme.text("in") or "")
    return "Authorization" if scheme.text("type") in ("http", "oauth2", "openIdConnect") else None


def _kind(scheme: DocumentNode) -> str:
    kind = scheme.text("type") or "unknown"
    detail = scheme.text("scheme") if kind == "http" else scheme.text("in") if kind == "apiKey" else None
    return flat(f"{kind} {detail}" if detail else kind, _SHOWN_CHARS)
