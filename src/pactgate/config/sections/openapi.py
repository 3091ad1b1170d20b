"""What a server entry says about an OpenAPI document: where it is, which of its operations become tools, with which credentials.

Must not: read the document; a file that is missing is a matter of connecting, not of configuration (D14). Serves D13: only the
operator's file names a document, and only the operator's file holds its credentials.
"""

from __future__ import annotations

import os.path
import re
from typing import Annotated, Any, Final, Literal

from msgspec import Meta

from pactgate.config import value_checks
from pactgate.config.documented import Documented
from pactgate.config.problems import ConfigFindings, Path, ValueFault
from pactgate.config.tree import ConfigNode

_IS_URL: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
OPENAPI_ONLY: Final = ("include", "exclude", "credentials")


def is_url(source: str) -> bool:
    return _IS_URL.match(source) is not None


def check_source(text: str) -> ValueFault | None:
    """A URL we may call, or the path of a file."""
    if is_url(text):
        return value_checks.check_url(text)
    return value_checks.check_program(text)


Source = Annotated[str, Meta(min_length=1, max_length=2000, extra={"expand": True, "check": check_source})]
Pattern = Annotated[str, Meta(min_length=1, max_length=300)]
Patterns = Annotated[tuple[Pattern, ...], Meta(max_length=1000)]
SchemeName = Annotated[str, Meta(min_length=1, max_length=200)]
CredentialValue = Annotated[
    str,
    Meta(
        min_length=1, max_length=8192, extra={"expand": True, "secret": True, "check": value_checks.check_header_value}
    ),
]


class OperationFilter(Documented, frozen=True, kw_only=True):
    """Operations of an OpenAPI document. In patterns `*` stands for any characters, slashes included, and `?` for one."""

    tags: Annotated[Patterns, Meta(description="Tags, as the document writes them, or patterns.")] = ()
    paths: Annotated[Patterns, Meta(description="Paths, as `/users/{id}`, or patterns, as `/users*`.")] = ()
    operations: Annotated[
        Patterns, Meta(description="Operation ids, as the document writes them, or names of tools, or patterns.")
    ] = ()
    methods: Annotated[
        tuple[Literal["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"], ...],
        Meta(max_length=7, description="HTTP methods."),
    ] = ()


class IncludedOperations(OperationFilter, frozen=True, kw_only=True):
    """Which operations become tools: those that match every list given here. Left out: all that are not deprecated."""

    deprecated: Annotated[bool, Meta(description="Whether deprecated operations become tools as well.")] = False


class ExcludedOperations(OperationFilter, frozen=True, kw_only=True):
    """Which operations do not become tools although `include` takes them: those that match any list given here."""


class OpenApiSettings(Documented, frozen=True, kw_only=True):
    """What a file says about an OpenAPI document."""

    openapi: Annotated[
        Source | None,
        Meta(
            description="OpenAPI 3.0 or 3.1 document, JSON or YAML, whose operations become tools: a file, from the folder of the "
            "configuration file on, or a URL. `baseUrl` counts before the document's own servers."
        ),
    ] = None
    include: Annotated[
        IncludedOperations,
        Meta(description="Which operations of the document become tools; left out: all but deprecated ones."),
    ] = IncludedOperations()
    exclude: Annotated[
        ExcludedOperations, Meta(description="Which operations do not become tools, although `include` takes them.")
    ] = ExcludedOperations()
    credentials: Annotated[
        dict[SchemeName, CredentialValue],
        Meta(
            max_length=50,
            description="Credentials by the document's security scheme: the key, the token, or `user:password`. "
            "They are put where the scheme says. Operations that need others are left out, and that is said.",
        ),
    ] = {}


def settle_openapi(
    entry: dict[str, Any], node: ConfigNode, path: Path, found: ConfigFindings, folder: str
) -> dict[str, Any]:
    """What an entry with a document says in our own words. A document of others is not a promise of the operator: unless told so, answers
    are not held against its schemas."""
    source: str = entry["openapi"]
    for name in entry.get("credentials", {}):
        if not name.isprintable():
            place = node.value["credentials"].value[name].anchor
            found.add((*path, "credentials", name), place, "This is not the name of a security scheme.", "")
    return {
        "openapi": source if is_url(source) else os.path.normpath(os.path.join(folder, source)),
        "outputValidation": entry.get("outputValidation", "off"),
    }
