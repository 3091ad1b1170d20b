"""Lets a file of another client be served as it is: ids, keys and variables in the client's spelling become ours, and each change is said.

Must not: change an entry that is in our own spelling, or decide what a value means (`server_entries` does).
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Final

from pactgate.config.problems import ConfigFindings, Path, show
from pactgate.config.value_checks import OWN_SERVER_ID, is_server_id, legal_id

SERVER_LISTS: Final = ("mcpServers", "servers")
_ADDRESSES: Final = ("serverUrl", "httpUrl")
_TYPES: Final = {"local": "stdio", "remote": "http", "streamable_http": "streamable-http"}
_IGNORED: Final = {
    "auth": "`pactgate login` signs in to the server.",
    "oauth": "`pactgate login` signs in to the server.",
    "metadata": "A client's own setting.",
    "source": "A client's own setting.",
    "bearer_token_env_var": "Write it as headers.Authorization.",
}
_OUR_AUTH: Final = frozenset({"type", "who", "issuer", "clientId", "clientSecret"})
"""An `auth` with one of these is ours; clients have others (`CLIENT_ID`)."""
_EDITOR_FOLDERS: Final = frozenset({".vscode", ".cursor", ".zed", ".gemini", ".codex", ".kiro", ".roo", ".opencode"})


def variables_of_editors(folder: str, environ: Mapping[str, str]) -> dict[str, str]:
    """What editors put in for `${workspaceFolder}` and `${userHome}`; the project of a file in `.vscode` is the folder around it."""
    project = os.path.dirname(folder) if os.path.basename(folder) in _EDITOR_FOLDERS else folder
    known = {"workspaceFolder": project, "workspaceFolderBasename": os.path.basename(project)}
    return {**known, "userHome": environ["HOME"]} if environ.get("HOME") else known


def adapt(root: dict[str, Any], found: ConfigFindings, known: frozenset[str]) -> dict[str, Any]:
    """The file in our spelling. `known` are our own top-level keys."""
    adapted = dict(root)
    unknown = [key for key in root if key not in known]
    if unknown and _is_of_a_client(found.file):
        for key in unknown:
            del adapted[key]
            found.warn((key,), "This is the client's own setting; the gateway ignores it.")
    for key in SERVER_LISTS:
        if isinstance(servers := adapted.get(key), dict):
            adapted[key] = _servers(key, servers, found)
    return adapted


def _is_of_a_client(file: str) -> bool:
    name = os.path.basename(file)
    if not name or name.startswith("pactgate."):
        return False
    from pactgate.config.clients.table import clients  # a file with our own keys alone never needs the table

    places = (place for client in clients() for place in (*client.user, *client.linux, *client.project))
    return any(os.path.basename(place) == name for place in places)


def _servers(key: str, servers: dict[str, Any], found: ConfigFindings) -> dict[str, Any]:
    adapted: dict[str, Any] = {}
    for name, entry in servers.items():
        id_ = name if is_server_id(name) or name == OWN_SERVER_ID else legal_id(name)
        if id_ != name:
            if id_ in servers or id_ in adapted:
                id_ = name  # the check of ids says what is wrong with it
            else:
                found.warn(
                    (key, name), f"The gateway calls this server {show(id_)}: ids have letters a-z, digits and hyphens."
                )
                found.rename((key, name), (key, id_))
        adapted[id_] = _entry(entry, (key, id_), found) if isinstance(entry, dict) else entry
    return adapted


def _is_our_auth(auth: object) -> bool:
    return not isinstance(auth, dict) or not auth or not _OUR_AUTH.isdisjoint(auth)


def _entry(entry: dict[str, Any], path: Path, found: ConfigFindings) -> dict[str, Any]:
    adapted = dict(entry)
    for name in _ADDRESSES:
        if name in adapted and "url" not in adapted:
            adapted["url"] = adapted.pop(name)
            found.rename((*path, name), (*path, "url"))
    if "environment" in adapted and "env" not in adapted:
        adapted["env"] = adapted.pop("environment")
        found.rename((*path, "environment"), (*path, "env"))
    if isinstance(command := adapted.get("command"), list) and command and "args" not in adapted:
        adapted["command"], adapted["args"] = command[0], command[1:]
    if isinstance(kind := adapted.get("type"), str) and kind in _TYPES:
        adapted["type"] = _TYPES[kind]
    if isinstance(adapted.get("tools"), list):  # which tools a client shows: ours is the file of Python tools
        if adapted["tools"] != ["*"]:
            found.warn((*path, "tools"), "The gateway offers all tools of this server.")
        del adapted["tools"]
    for name, why in _IGNORED.items():
        if name in adapted and not (name == "auth" and _is_our_auth(adapted[name])):
            del adapted[name]
            found.warn((*path, name), f"This is ignored. {why}")
    return adapted
