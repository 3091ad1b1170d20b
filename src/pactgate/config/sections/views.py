"""The section `views`: parts of everything that is served, under a path of their own, with names and descriptions of the operator's.

A view chooses and renames; it gives no right (D24). Must not: rewrite definitions; `catalog/views.py` does.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final, Literal

from msgspec import Meta

from pactgate.config.problems import ConfigFindings, Path, nearest, show
from pactgate.config.sections import Section, doc
from pactgate.config.sections.limits import ToolName, ToolPattern
from pactgate.config.sections.permissions import SelectorText
from pactgate.config.selectors import read_selector, servers_of

SEARCH_TOOLS: Final = ("find_tools", "describe_tools", "call_tool", "call_read_tool", "call_write_tool")
"""Names of the tools of the search surface."""
_GROUP_NAME: Final = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
ViewName = Annotated[str, Meta(max_length=50, pattern="^[a-z][a-z0-9-]*$")]
ShownName = Annotated[str, Meta(max_length=64, pattern="^[A-Za-z0-9_-]+$")]
ShownText = Annotated[str, Meta(min_length=1, max_length=2000)]
Argument = Annotated[str, Meta(min_length=1, max_length=200)]
Chosen = Annotated[tuple[SelectorText, ...], Meta(max_length=500)]


class ViewSection(Section, frozen=True, kw_only=True):
    """One view: what its clients see at `/mcp/v/<name>`."""

    tools: Annotated[
        Chosen,
        doc(
            "Selectors of tools, as in `permissions`. Tools are listed in this order; those of one selector by server and name."
        ),
    ]
    exclude: Annotated[Chosen, doc("Selectors of tools, prompts and resources that are left out again.")] = ()
    prompts: Annotated[Chosen, doc("Selectors of prompts.")] = ()
    resources: Annotated[Chosen, doc("Selectors of resources, by full URI.")] = ()
    rename: Annotated[
        dict[ToolName, ShownName], doc("Names for tools, by full name: letters, digits, `_` and `-`.", max_length=500)
    ] = {}
    describe: Annotated[
        dict[ToolName, ShownText],
        doc("Descriptions for tools, by full name, instead of the servers' own.", max_length=500),
    ] = {}
    arguments: Annotated[
        dict[ToolPattern, dict[Argument, Any]],
        doc(
            "Fixed values for arguments, by full name or pattern of tools (`github.*`). They disappear from the schema and are added to "
            "each call. A pattern fixes an argument of those of its tools that have it.",
            max_length=500,
        ),
    ] = {}
    surface: Annotated[
        Literal["full", "search", "groups"],
        doc(
            "`full` lists the tools. `search` lists `find_tools`, `describe_tools` and `call_tool` instead, for clients that can't carry "
            "many definitions. `groups` lists none: a client that knows the draft extension `io.modelcontextprotocol/groups` fetches them "
            "by server or view (experimental)."
        ),
    ] = "full"
    pin: Annotated[Chosen, doc("With `search` or `groups`: selectors of tools that are listed all the same.")] = ()
    split_calls: Annotated[
        bool,
        doc(
            "With `search`: `call_read_tool` and `call_write_tool` instead of `call_tool`, so that a client can approve reads alone."
        ),
    ] = False


Views = Annotated[
    dict[ViewName, ViewSection],
    doc(
        "Parts of what is served, by name, at `/mcp/v/<name>`; also by `view` of a class in `callers`, and by "
        "`serve --stdio --view`.",
        max_length=200,
    ),
]


def check_views(settings: Mapping[str, Any], found: ConfigFindings) -> None:
    """Check views against servers, and names against each other. The values are valid by themselves."""
    servers, views = tuple(settings.get("servers", {})), settings.get("views", {})
    for name, view in views.items():
        _check_view(view, servers, ("views", name), found)
        if view.get("surface") == "groups":
            _check_groups((*servers, *(other for other in views if other != name)), ("views", name, "surface"), found)
    for name, one in settings.get("callers", {}).items():
        if "view" in one and one["view"] not in views:
            close = nearest(one["view"], views)
            hint = f'Did you mean "{close}"?' if close else f"There are: {', '.join(views) or 'none'}."
            found.add(("callers", name, "view"), f"There is no view {show(one['view'])}.", hint, at_value=True)


def _check_view(view: Mapping[str, Any], servers: Sequence[str], path: Path, found: ConfigFindings) -> None:
    for word in ("tools", "exclude", "prompts", "resources", "pin"):
        _check_selectors(view.get(word, ()), servers, (*path, word), found)
    if not any(view.get(word) for word in ("tools", "prompts", "resources")):
        found.add((*path, "tools"), "This view is empty.", "Name tools, as github.*.")
    for word in ("rename", "describe", "arguments"):
        for full_name in view.get(word, {}):
            _check_server(full_name, servers, (*path, word, full_name), found)
    _check_names(view, servers, path, found)
    surface = view.get("surface", "full")
    for word in ("pin", "splitCalls"):
        if view.get(word) and (surface == "full" or (surface == "groups" and word == "splitCalls")):
            found.add((*path, word), "This has no effect without a search surface.", 'Add "surface": "search".')


def _check_groups(names: Sequence[str], path: Path, found: ConfigFindings) -> None:
    """Every server and every other view is a group."""
    for name, count in Counter(names).items():
        if count > 1:
            message = f"The server and the view {show(name)} would be groups of one name."
            found.add(path, message, "Give the view another name.", at_value=True)
        elif not _GROUP_NAME.fullmatch(name):
            hint = "A group has single hyphens, and none at the end."
            found.add(path, f"{show(name)} can't be the name of a group.", hint, at_value=True)


def _check_selectors(given: Sequence[str], servers: Sequence[str], path: Path, found: ConfigFindings) -> None:
    for at, text in enumerate(given):
        if not servers_of(read_selector(text), servers):
            found.add((*path, at), f"No server has anything of {show(text)}.", _servers(servers), at_value=True)


def _check_server(full_name: str, servers: Sequence[str], path: Path, found: ConfigFindings) -> None:
    if not servers_of(read_selector(full_name), servers):
        found.add(path, f"No server has a tool {show(full_name)}.", _servers(servers))


def _check_names(view: Mapping[str, Any], servers: Sequence[str], path: Path, found: ConfigFindings) -> None:
    seen: dict[str, str] = {}
    for full_name, shown in view.get("rename", {}).items():
        place = (*path, "rename", full_name)
        first = seen.setdefault(shown, full_name)
        if first != full_name:
            found.add(place, f"{show(first)} has the same name.", "Give each tool its own.", at_value=True)
        if shown in SEARCH_TOOLS:
            found.add(place, f"{show(shown)} is a tool of the search surface.", "Choose another.", at_value=True)
        if any(shown.startswith(f"{server}__") for server in servers):
            hint = "Names that begin with a server and __ mean a tool of this server."
            found.add(place, f"{show(shown)} can be mistaken for the name of another tool.", hint, at_value=True)


def _servers(servers: Sequence[str]) -> str:
    return f"Write full names, as server.tool. Servers: {', '.join(servers) or 'none'}."
