"""Maps an OpenAPI 3.0 or 3.1 document to endpoints: every operation becomes one, or is skipped with the reason.

Pure: the caller hands in a reader for the files beside the document. A bad operation is skipped alone; only a document that can't be
read as a whole is refused. Names depend on all operations, chosen or not, so that another choice renames nothing. Must not: fetch
anything, or send a credential to a host that only a document from elsewhere names.
Serves D3 (stable names), D8 (closed schemas) and D13 (nothing in a document is a command).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase
from typing import Any, Final, NamedTuple, cast
from urllib.parse import urljoin, urlsplit

from pactgate.config.sections.endpoints import Endpoint, Method
from pactgate.config.sections.openapi import OperationFilter
from pactgate.config.server_settings import ServerConfig
from pactgate.config.value_checks import check_base_url, check_path_template
from pactgate.core.display import flat
from pactgate.protocol.messages import encode_json
from pactgate.upstreams.http.egress import named_origins, origin_of
from pactgate.upstreams.openapi.document_text import DocumentError, UnreadableDocumentError
from pactgate.upstreams.openapi.names import OperationKey, assign_names, limit_for
from pactgate.upstreams.openapi.operations import (
    describe,
    merged_object,
    read_answer,
    read_request,
    title_of,
)
from pactgate.upstreams.openapi.references import DocumentNode, ReadFile, References
from pactgate.upstreams.openapi.schemas import Direction, Schemas
from pactgate.upstreams.openapi.security import Security
from pactgate.upstreams.rest.credentials import Credential, operator_names

MAX_OPERATIONS: Final = 10_000
MAX_OUTPUT_BYTES: Final = 64 * 1024
MAX_OUTPUTS_BYTES: Final = 2 * 1024 * 1024
"""Response schemas with `outputValidation: warn`, one and all of them. What is beyond is not validated, and that is said."""
_METHODS: Final = ("get", "head", "post", "put", "patch", "delete", "options", "trace")
_SHOWN_CHARS: Final = 200
_SHOWN_OPERATIONS: Final = 3
_MAX_VARIABLES: Final = 50


class SkippedOperation(NamedTuple):
    """An operation that is skipped, as `GET /users/{id}`, and why."""

    operation: str
    reason: str

    def __str__(self) -> str:
        return f"{self.operation}: {self.reason}"


def by_reason(left_out: Iterable[SkippedOperation]) -> dict[str, list[str]]:
    """The skipped operations by reason, the most frequent reason first."""
    grouped: dict[str, list[str]] = {}
    for one in left_out:
        grouped.setdefault(one.reason, []).append(one.operation)
    return dict(sorted(grouped.items(), key=lambda pair: -len(pair[1])))


def some_of(operations: list[str]) -> str:
    """The first operations, and the number of the others."""
    more = len(operations) - _SHOWN_OPERATIONS
    return ", ".join(operations[:_SHOWN_OPERATIONS]) + (f" and {more} more" if more > 0 else "")


class MappedDocument(NamedTuple):
    """The endpoints of a document. `credentials` are by the name of the endpoint; `not_chosen` counts filtered operations."""

    endpoints: tuple[Endpoint, ...]
    left_out: tuple[SkippedOperation, ...]
    title: str
    version: str
    base_url: str
    credentials: dict[str, tuple[Credential, ...]]
    not_chosen: int


class _Operation(NamedTuple):
    subject: OperationKey
    item: DocumentNode
    spot: DocumentNode

    @property
    def label(self) -> str:
        return flat(f"{self.subject.method} {self.subject.path}", _SHOWN_CHARS)


def map_document(
    root: Any, config: ServerConfig, *, url: str | None = None, read_file: ReadFile | None = None
) -> MappedDocument:
    """`url` is where the document came from, if not from a file. Raises UnreadableDocumentError."""
    is_early = _require_version(root)
    references = References(root, read_file)
    if not isinstance(root.get("paths", {}), dict):
        raise UnreadableDocumentError("has no readable paths")
    return _Mapping(references, config, url, is_early=is_early).run()


class _Mapping:
    """One pass over one document."""

    def __init__(self, references: References, config: ServerConfig, url: str | None, *, is_early: bool) -> None:
        root = references.root
        self._references = references
        self._config = config
        self._url = url
        self._schemas = Schemas(references, is_early=is_early)
        self._security = Security(references, config.credentials, config.headers, root.inside("security"))
        self._base_url = self._require_base_url(root)
        self._output_bytes = 0
        self._left_out: list[SkippedOperation] = []
        self._credentials: dict[str, tuple[Credential, ...]] = {}

    def run(self) -> MappedDocument:
        for name in self._security.unknown:
            known = ", ".join(self._security.names) or "none"
            self._left_out.append(
                SkippedOperation(
                    f"credentials.{flat(name, 60)}", f"the document has no such security scheme; it has {known}"
                )
            )
        operations = list(self._operations())
        names = assign_names([one.subject for one in operations], limit_for(self._config.id))
        endpoints: list[Endpoint] = []
        not_chosen = 0
        for one in operations:
            name = names[one.subject]
            if not self._is_chosen(one, name):
                not_chosen += 1
                continue
            if one.spot.is_set("deprecated") and not self._config.include.deprecated:
                self._left_out.append(
                    SkippedOperation(one.label, "it is deprecated (set include.deprecated to keep it)")
                )
                continue
            try:
                endpoints.append(self._endpoint(one, name))
            except DocumentError as problem:
                self._left_out.append(SkippedOperation(one.label, problem.why))
        info = self._references.root.inside("info")
        return MappedDocument(
            endpoints=tuple(endpoints),
            left_out=tuple(self._left_out),
            title=info.text("title") or self._config.id,
            version=info.text("version") or "",
            base_url=self._base_url,
            credentials=self._credentials,
            not_chosen=not_chosen,
        )

    def _operations(self) -> Iterator[_Operation]:
        count = 0
        for path, given in self._references.root.inside("paths").members().items():
            if not isinstance(path, str) or not path.startswith("/"):
                continue  # an extension
            try:
                item = self._references.follow(DocumentNode(given))
            except DocumentError as problem:
                self._left_out.append(SkippedOperation(flat(path, _SHOWN_CHARS), problem.why))
                continue
            for word in _METHODS:
                spot = item.inside(word)
                if isinstance(spot.value, dict):
                    count += 1
                    if count > MAX_OPERATIONS:
                        self._left_out.append(SkippedOperation("…", f"there are more than {MAX_OPERATIONS} operations"))
                        return
                    yield _Operation(OperationKey(word.upper(), path, spot.text("operationId")), item, spot)

    def _is_chosen(self, one: _Operation, name: str) -> bool:
        return all(_matches(self._config.include, one, name)) and not any(_matches(self._config.exclude, one, name))

    def _endpoint(self, one: _Operation, name: str) -> Endpoint:
        method, path = one.subject.method, one.subject.path
        if method == "TRACE":
            raise DocumentError(f"{method} is not a method tools use")
        if (fault := check_path_template(path)) is not None:
            raise DocumentError(f"its path can't be called: {fault.message}")
        needed = self._security.needed(one.spot)
        base_url = self._own_base_url(one, has_secrets=bool(needed or self._config.headers))
        given = operator_names(self._config.headers, needed)
        request = read_request(one.item, one.spot, method, path, self._references, self._schemas, given)
        answer = read_answer(one.spot, method, self._references)
        output = self._output(answer.output)
        is_too_large = output is not None and self._is_too_large(output)
        if is_too_large:
            self._left_out.append(
                SkippedOperation(one.label, "its responses are not validated, because their schema is too large")
            )
        endpoint = Endpoint(
            name=name,
            description=describe(one.spot, method, path),
            title=title_of(one.spot),
            method=cast("Method", method),
            path=path,
            base_url=base_url,
            parameters=request.parameters,
            body=request.body,
            response=answer.kind,
            output_schema=None if is_too_large else output,
            output_validation="off" if is_too_large else None,
            allow_empty=answer.allow_empty,
        )
        self._left_out += [SkippedOperation(one.label, note) for note in request.notes]
        if needed:
            self._credentials[name] = needed
        return endpoint

    def _output(self, spot: DocumentNode | None) -> dict[str, Any] | None:
        """The schema of the response, where it is wanted and describes an object or an array."""
        if spot is None or self._config.output_validation == "off":
            return None
        try:
            schema = self._schemas.stand_alone({"": spot}, Direction.OUTPUT)[""]
        except DocumentError:
            return None  # the operation works without a promise about its response
        merged = merged_object(schema) or schema
        return merged if merged.get("type") in ("object", "array") else None

    def _is_too_large(self, output: dict[str, Any]) -> bool:
        """Whether a schema that only warns has no room in the list of tools, through which it reaches the gateway."""
        if self._config.output_validation != "warn":
            return False
        size = len(encode_json(output))
        if size > MAX_OUTPUT_BYTES or self._output_bytes + size > MAX_OUTPUTS_BYTES:
            return True
        self._output_bytes += size
        return False

    def _require_base_url(self, root: DocumentNode) -> str:
        if self._config.base_url is not None:
            return self._config.base_url
        listed = root.inside("servers").items()
        try:
            found = self._address(listed[0]) if listed else self._resolved("/")
        except DocumentError as problem:
            raise UnreadableDocumentError(f"names no server that can be called ({problem.why}); set baseUrl") from None
        has_secrets = bool(self._config.credentials or self._config.headers)
        if self._url is not None and has_secrets and not _same_origin(found, self._url):
            raise UnreadableDocumentError(
                "wants calls to go to another host than it comes from: credentials are sent there only when baseUrl names it"
            )
        return found

    def _own_base_url(self, one: _Operation, *, has_secrets: bool) -> str | None:
        """The base URL of an operation that has its own. `baseUrl` of the operator takes precedence."""
        listed = one.spot.inside("servers").items() or one.item.inside("servers").items()
        if self._config.base_url is not None or not listed:
            return None
        found = self._address(listed[0])
        is_known = origin_of(found) in named_origins([self._base_url], self._config.allowed_hosts)
        if has_secrets and not is_known:
            raise DocumentError(f"it is called at {_origin(found)}, and credentials go only to hosts in allowedHosts")
        return found

    def _address(self, server: DocumentNode) -> str:
        """The base URL of a server object. Raises DocumentError."""
        text = server.text("url")
        if text is None:
            raise DocumentError("a server has no url")
        variables = server.inside("variables")
        for name in list(variables.members())[:_MAX_VARIABLES]:
            text = text.replace(f"{{{name}}}", str(variables.inside(name).members().get("default", "")))[:2000]
        if "{" in text:
            raise DocumentError(f"{flat(text, _SHOWN_CHARS)} has a variable without a value")
        return self._resolved(text)

    def _resolved(self, text: str) -> str:
        shown = flat(text, _SHOWN_CHARS)
        try:
            joined = urljoin(self._url or "", text)
        except ValueError:
            raise DocumentError(f"{shown} is not a URL") from None
        if (fault := check_base_url(joined)) is not None:
            raise DocumentError(f"{shown}: {fault.message}")
        return joined.rstrip("/")


def _require_version(root: Any) -> bool:
    """Whether the document is OpenAPI 3.0. Raises UnreadableDocumentError if it is not OpenAPI 3."""
    if not isinstance(root, dict):
        raise UnreadableDocumentError("is not an OpenAPI document: it is not an object")
    if "swagger" in root:
        raise UnreadableDocumentError(
            f"is Swagger {flat(str(root['swagger']), 10)}, which is not supported; convert it to OpenAPI 3, for example with "
            "`npx swagger2openapi --outfile openapi.json old.json`"
        )
    version = root.get("openapi")
    if not isinstance(version, str) or not version.startswith("3."):
        said = f"says openapi: {flat(str(version), 20)}" if version is not None else "has no `openapi: 3.x`"
        raise UnreadableDocumentError(f"is not an OpenAPI 3.0 or 3.1 document: it {said}")
    return version.startswith("3.0")


def _matches(selection: OperationFilter, one: _Operation, name: str) -> list[bool]:
    """For each list of the filter that is given, whether the operation matches it."""
    tags = one.spot.members().get("tags")
    words = (
        (selection.tags, [tag for tag in tags if isinstance(tag, str)] if isinstance(tags, list) else []),
        (selection.paths, [one.subject.path]),
        (selection.operations, [name, one.subject.operation_id or name]),
        (selection.methods, [one.subject.method]),
    )
    return [
        any(fnmatchcase(word, pattern.replace("[", "[[]")) for word in found for pattern in patterns)
        for patterns, found in words
        if patterns
    ]


def _origin(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"


def _same_origin(one: str, other: str) -> bool:
    return _origin(one).casefold() == _origin(other).casefold()
