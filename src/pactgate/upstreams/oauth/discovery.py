"""Which authorization server speaks for a server: its own metadata (RFC 9728), then that of the authorization server (RFC 8414, OIDC).

Pure. Issuers are compared as they are written, character by character. Must not: use a document whose issuer or resource is another's.
"""

from __future__ import annotations

from typing import Final
from urllib.parse import urlsplit

from msgspec import Struct

from pactgate.core.display import cut
from pactgate.protocol.oauth_metadata import metadata_urls
from pactgate.upstreams.oauth.challenge import Challenge, split_scopes
from pactgate.upstreams.oauth.steps import Fetch, Steps, decode_object, sign_in_failure, text_of, texts_of

_MAX_ISSUERS: Final = 4
_SHOWN_CHARS: Final = 200
_PROTECTED: Final = "/.well-known/oauth-protected-resource"


class ServerResource(Struct, frozen=True):
    """What a server says of itself as a protected resource."""

    resource: str
    issuers: tuple[str, ...]
    scopes: tuple[str, ...] | None = None


class AuthorizationServer(Struct, frozen=True):
    """What an authorization server says of itself."""

    issuer: str
    authorization_endpoint: str
    token_endpoint: str
    registration_endpoint: str = ""
    auth_methods: tuple[str, ...] | None = None
    challenge_methods: tuple[str, ...] | None = None
    scopes: tuple[str, ...] = ()
    takes_client_documents: bool = False
    sends_issuer: bool = False


def canonical_resource(url: str) -> str:
    """The identifier of a server (RFC 8707): its URL without fragment, and without a slash that stands for no path."""
    parts = urlsplit(url)
    path = "" if parts.path == "/" and not parts.query else parts.path
    return parts._replace(scheme=parts.scheme.lower(), netloc=parts.netloc.lower(), path=path, fragment="").geturl()


def find_resource(server: str, url: str, challenge: Challenge) -> Steps[ServerResource]:
    """The metadata of a server. One without any speaks for itself, as servers of 2025-03-26 do."""
    resource = canonical_resource(url)
    for candidate in _resource_candidates(resource, challenge):
        fetched = yield Fetch(candidate)
        members = decode_object(fetched) if fetched.status == 200 else None
        if members is not None:
            return _read_resource(server, resource, members)
    if challenge.resource_metadata:
        raise sign_in_failure(server, "the document that its challenge names can't be read.")
    parts = urlsplit(resource)
    return ServerResource(resource, (f"{parts.scheme}://{parts.netloc}",))


def _resource_candidates(resource: str, challenge: Challenge) -> list[str]:
    if challenge.resource_metadata:
        return [challenge.resource_metadata]
    parts = urlsplit(resource)
    origin = f"{parts.scheme}://{parts.netloc}"
    return list(dict.fromkeys((f"{origin}{_PROTECTED}{parts.path}", f"{origin}{_PROTECTED}")))


def _read_resource(server: str, resource: str, members: dict[str, object]) -> ServerResource:
    said, issuers = text_of(members, "resource"), texts_of(members, "authorization_servers")
    if not covers(said, resource):
        why = f"its metadata is that of another resource, {cut(said, _SHOWN_CHARS)!r}, and not of {resource}."
        raise sign_in_failure(server, why)
    if not issuers:
        raise sign_in_failure(server, "its metadata names no authorization server.")
    scopes = texts_of(members, "scopes_supported")
    return ServerResource(said, issuers[:_MAX_ISSUERS], None if scopes is None else split_scopes(" ".join(scopes)))


def covers(said: str, resource: str) -> bool:
    """Whether a resource identifier is that of this URL, or of a path above it on the same origin."""
    try:
        outer, inner = urlsplit(canonical_resource(said)), urlsplit(resource)
    except ValueError:
        return False
    if (outer.scheme, outer.netloc) != (inner.scheme, inner.netloc) or outer.query not in ("", inner.query):
        return False
    path = outer.path.rstrip("/")
    return inner.path == path or inner.path.startswith(f"{path}/") or inner.path == outer.path


def find_authorization_server(server: str, issuer: str) -> Steps[AuthorizationServer]:
    """The metadata of one authorization server: three places where the issuer has a path, else two."""
    for candidate in metadata_urls(issuer):
        fetched = yield Fetch(candidate)
        members = decode_object(fetched) if fetched.status == 200 else None
        if members is not None:
            return _read_server(server, issuer, members)
    raise sign_in_failure(server, f"the authorization server {cut(issuer, _SHOWN_CHARS)} has no metadata document.")


def _read_server(server: str, issuer: str, members: dict[str, object]) -> AuthorizationServer:
    said = text_of(members, "issuer")
    if said != issuer:
        shown = cut(said, _SHOWN_CHARS)
        raise sign_in_failure(server, f"the metadata of {cut(issuer, _SHOWN_CHARS)} names another issuer, {shown!r}.")
    found = AuthorizationServer(
        issuer=issuer,
        authorization_endpoint=text_of(members, "authorization_endpoint"),
        token_endpoint=text_of(members, "token_endpoint"),
        registration_endpoint=text_of(members, "registration_endpoint"),
        auth_methods=texts_of(members, "token_endpoint_auth_methods_supported"),
        challenge_methods=texts_of(members, "code_challenge_methods_supported"),
        scopes=texts_of(members, "scopes_supported") or (),
        takes_client_documents=members.get("client_id_metadata_document_supported") is True,
        sends_issuer=members.get("authorization_response_iss_parameter_supported") is True,
    )
    if not found.token_endpoint:
        raise sign_in_failure(server, f"the metadata of {cut(issuer, _SHOWN_CHARS)} has no token_endpoint.")
    return found


def choose_scopes(
    *, settings: tuple[str, ...], challenged: tuple[str, ...], offered: tuple[str, ...] | None, before: tuple[str, ...]
) -> tuple[str, ...]:
    """What to ask for: the challenge, else all that the server lists, else nothing; with those of the settings and of before (SEP-2350)."""
    first = settings or challenged or (offered or ())
    return tuple(dict.fromkeys((*before, *first, *challenged)))


def with_offline_access(scopes: tuple[str, ...], found: AuthorizationServer) -> tuple[str, ...]:
    """A refresh token has to be asked for where the authorization server lists the scope for it (SEP-2207)."""
    wanted = "offline_access" in found.scopes and "offline_access" not in scopes
    return (*scopes, "offline_access") if wanted else scopes
