"""What the library of the demo offers, said once: as endpoints in the words of the gateway's configuration, and as an OpenAPI document."""

from __future__ import annotations

from typing import Any, Final

Json = dict[str, Any]

_BOOK: Final[Json] = {
    "type": "object",
    "properties": {
        "id": {"type": "string"},
        "title": {"type": "string"},
        "author": {"type": "string"},
        "year": {"type": "integer"},
        "available": {"type": "boolean", "description": "Whether nobody has it."},
    },
    "required": ["id", "title", "author", "year"],
}
_ID: Final[Json] = {
    "name": "id",
    "in": "path",
    "required": True,
    "schema": {"type": "string"},
    "description": "A book, by the id search_books gives.",
}

ENDPOINTS: Final[tuple[Json, ...]] = (
    {
        "name": "search_books",
        "title": "Search the library",
        "description": "Books whose title or author contains a text, oldest entries first; all of them without one.",
        "method": "GET",
        "path": "/books",
        "parameters": [
            {"name": "q", "in": "query", "schema": {"type": "string"}, "description": "Part of a title or an author."},
            {"name": "limit", "in": "query", "schema": {"type": "integer", "minimum": 1, "maximum": 50}},
        ],
        "outputSchema": {
            "type": "object",
            "properties": {"books": {"type": "array", "items": _BOOK}, "total": {"type": "integer"}},
            "required": ["books", "total"],
        },
        "examples": [{"q": "austen"}],
    },
    {
        "name": "get_book",
        "title": "Look at a book",
        "description": "One book, and whether it can be borrowed.",
        "method": "GET",
        "path": "/books/{id}",
        "parameters": [_ID],
        "outputSchema": _BOOK,
        "examples": [{"id": "emma"}],
    },
    {
        "name": "book_card",
        "title": "Catalogue card",
        "description": "The card of a book in the catalogue, as text.",
        "method": "GET",
        "path": "/books/{id}/card",
        "parameters": [_ID],
        "response": "text",
    },
    {
        "name": "borrow_book",
        "title": "Borrow a book",
        "description": "Lends a book to a reader. A book somebody has can't be lent again before it is back.",
        "method": "POST",
        "path": "/books/{id}/loans",
        "parameters": [_ID],
        "body": {
            "schema": {
                "type": "object",
                "properties": {"reader": {"type": "string", "description": "Who takes it home."}},
                "required": ["reader"],
            }
        },
        "outputSchema": {"type": "object", "required": ["loan", "book", "reader"]},
    },
    {
        "name": "return_book",
        "title": "Bring a book back",
        "description": "Ends a loan.",
        "method": "DELETE",
        "path": "/loans/{loan}",
        "parameters": [{"name": "loan", "in": "path", "required": True, "schema": {"type": "string"}}],
        "response": "none",
    },
)


def openapi() -> Json:
    """The same as an OpenAPI 3.1 document."""
    paths: Json = {}
    for endpoint in ENDPOINTS:
        paths.setdefault(endpoint["path"], {})[endpoint["method"].lower()] = _operation(endpoint)
    info = {"title": "Library", "version": "1.0.0", "description": "A lending library of eight books."}
    return {"openapi": "3.1.0", "info": info, "paths": paths}


def _operation(endpoint: Json) -> Json:
    operation: Json = {
        "operationId": endpoint["name"],
        "summary": endpoint["title"],
        "description": endpoint["description"],
        "parameters": endpoint["parameters"],
    }
    if "body" in endpoint:
        content = {"application/json": {"schema": endpoint["body"]["schema"]}}
        operation["requestBody"] = {"required": True, "content": content}
    kind = endpoint.get("response", "json")
    if kind == "none":
        operation["responses"] = {"204": {"description": "Done."}}
    elif kind == "text":
        operation["responses"] = {
            "200": {"description": "A text.", "content": {"text/plain": {"schema": {"type": "string"}}}}
        }
    else:
        status = "201" if endpoint["method"] == "POST" else "200"
        content = {"application/json": {"schema": endpoint["outputSchema"]}}
        operation["responses"] = {status: {"description": "Found.", "content": content}}
    return operation
