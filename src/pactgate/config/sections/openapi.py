"""The settings of an OpenAPI document: its source, the operations that become tools, and their credentials.

Must not: read the document; a missing file is a connection failure, not a configuration problem (D14). Serves D13: only the
operator's file names a document, and only the operator's file holds its credentials.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, Final, Literal

from msgspec import Meta

from pactgate.config import value_checks
from pactgate.config.problems import ConfigFindings, Path, ValueFault
from pactgate.config.sections import Section, doc

_IS_URL: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
OPENAPI_ONLY: Final = ("include", "exclude", "credentials")


def is_url(source: str) -> bool:
    return _IS_URL.match(source) is not None


def check_source(text: str) -> ValueFault | None:
    """Check a URL to fetch, or the path of a file."""
    if is_url(text):
        return value_checks.check_url(text)
    return value_checks.check_program(text)


def _is_path(source: str) -> bool:
    return not is_url(source)


Source = Annotated[
    str, Meta(min_length=1, max_length=2000, extra={"expand": True, "check": check_source, "is_path": _is_path})
]
Pattern = Annotated[str, Meta(min_length=1, max_length=300)]
Patterns = Annotated[tuple[Pattern, ...], Meta(max_length=1000)]
SchemeName = Annotated[str, Meta(min_length=1, max_length=200)]
CredentialValue = Annotated[
    str,
    Meta(
        min_length=1, max_length=8192, extra={"expand": True, "secret": True, "check": value_checks.check_header_value}
    ),
]


class OperationFilter(Section, frozen=True, kw_only=True):
    """Operations of an OpenAPI document. In patterns `*` stands for any characters, slashes included, and `?` for one."""

    tags: Annotated[Patterns, doc("Tags, as the document writes them, or patterns.")] = ()
    paths: Annotated[Patterns, doc("Paths, as `/users/{id}`, or patterns, as `/users*`.")] = ()
    operations: Annotated[
        Patterns, doc("Operation ids, as the document writes them, or names of tools, or patterns.")
    ] = ()
    methods: Annotated[
        tuple[Literal["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"], ...],
        doc("HTTP methods.", max_length=7),
    ] = ()


class IncludedOperations(OperationFilter, frozen=True, kw_only=True):
    """Which operations become tools: those that match every list given here. Default: all that are not deprecated."""

    deprecated: Annotated[bool, doc("Whether deprecated operations become tools as well.")] = False


class ExcludedOperations(OperationFilter, frozen=True, kw_only=True):
    """Which operations do not become tools although `include` matches them: those that match any list given here."""


class OpenApiSettings(Section, frozen=True, kw_only=True):
    """Settings of an OpenAPI document."""

    openapi: Annotated[
        Source | None,
        doc("OpenAPI 3.0 or 3.1 document whose operations become tools: a file or a URL, in JSON or YAML."),
    ] = None
    include: Annotated[
        IncludedOperations, doc("Which operations of the document become tools. Default: all but deprecated ones.")
    ] = IncludedOperations()
    exclude: Annotated[
        ExcludedOperations, doc("Which operations do not become tools, although `include` matches them.")
    ] = ExcludedOperations()
    credentials: Annotated[
        dict[SchemeName, CredentialValue],
        doc(
            "Credentials by the document's security scheme: the key, the token, or `user:password`. Operations "
            "that need other credentials are skipped, with a message.",
            max_length=50,
        ),
    ] = {}


def check_credential_names(entry: dict[str, Any], path: Path, found: ConfigFindings) -> None:
    for name in entry.get("credentials", {}):
        if not name.isprintable():
            found.add((*path, "credentials", name), "This is not the name of a security scheme.")
