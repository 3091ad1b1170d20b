"""Validates values against the structs of `model`: reports every problem, and returns the valid part.

Driven by the types alone: a new setting never changes this file. It also fills in variables, collects secrets, and makes paths absolute.
Must not: convert one type into another, fill in defaults, or repeat a secret. Enforces S4/F4 and S4/UNDECIDED-2.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from msgspec import UNSET, inspect

from pactgate.config.expand import ReadSecret, expand, no_secret_files
from pactgate.config.file_access import SecretFiles
from pactgate.config.model import ELSEWHERE
from pactgate.config.problems import SHOWN_PROBLEMS, ConfigFindings, ConfigProblem, Path, ValueFault, nearest, show
from pactgate.config.sections.auth import HASHED

SECRET_MIN_CHARACTERS: Final = 6
"""Shorter values are not masked: they occur in too many log lines by chance."""

PLAIN_VARIABLES: Final = frozenset(
    {"APPDATA", "HOME", "HOSTNAME", "LANG", "LC_ALL", "LOCALAPPDATA", "LOGNAME", "PATH", "PWD", "SHELL"}
    | {"TEMP", "TERM", "TMP", "TMPDIR", "TZ", "USER", "USERPROFILE"}
)
"""Variables that are never secrets."""
CREDENTIAL_NAME: Final = re.compile(
    r"(?:^|[-_:])(?:auth|authorization|cookie|credentials?|passphrase|passw(?:or)?d|pat|secret|token"
    r"|(?:access|api|encryption|private|secret|signing|subscription)[-_]?key)$",
    re.IGNORECASE,
)
"""Names of variables, headers and flags that have a credential as their value."""
SERVER_LISTS: Final = ("mcpServers", "servers")
"""The keys that a list of servers may have."""
PLAIN_HEADERS: Final = frozenset({"accept", "content-type", "user-agent"})

_Extra = Mapping[str, Any]


class Validation:
    """One pass over the values of one source. An invalid value is reported once and is not part of the result."""

    def __init__(
        self,
        found: ConfigFindings,
        environ: Mapping[str, str],
        folder: str = "",
        read_secret: ReadSecret = no_secret_files,
    ) -> None:
        self.secrets: set[str] = set()
        self.written_secrets: list[Path] = []
        """Where credentials stand in the file itself, instead of a variable or another file."""
        self.unresolved: dict[str, list[ConfigProblem]] = {}
        """What is missing in the environment, by the server that needs it."""
        self._read_secret = read_secret
        self._found = found
        self._environ = environ
        self._folder = folder
        self._takers: dict[type, Callable[[Any, Any, Path, _Extra], Any]] = {
            inspect.Metadata: self._metadata,
            inspect.UnionType: self._optional,
            inspect.StructType: self._struct,
            inspect.DictType: self._dict,
            inspect.VarTupleType: self._list,
            inspect.LiteralType: self._choice,
            inspect.StrType: self._text,
            inspect.IntType: self._number,
            inspect.FloatType: self._number,
            inspect.BoolType: self._boolean,
            inspect.AnyType: self._anything,
        }

    def take(self, value: Any, kind: inspect.Type, path: Path = (), extra: _Extra | None = None) -> Any:
        """The valid value, or UNSET when it is invalid or ignored."""
        return self._takers[type(kind)](value, kind, path, extra or {})

    def _metadata(self, value: Any, kind: inspect.Metadata, path: Path, extra: _Extra) -> Any:
        return self.take(value, kind.type, path, {**extra, **(kind.extra or {})})

    def _optional(self, value: Any, kind: inspect.UnionType, path: Path, extra: _Extra) -> Any:
        """A value that may be absent, or a list or a string instead of a single value."""
        kinds = [one for one in kind.types if not isinstance(one, inspect.NoneType)]
        if value is None and len(kinds) < len(kind.types):
            return UNSET
        lists = [one for one in kinds if isinstance(_bare(one), inspect.VarTupleType)]
        if lists and isinstance(value, list | tuple):
            return self.take(value, lists[0], path, extra)
        texts = [one for one in kinds if isinstance(_bare(one), inspect.StrType)]
        return self.take(value, texts[0] if texts and isinstance(value, str) else kinds[0], path, extra)

    def _anything(self, value: Any, kind: inspect.AnyType, path: Path, extra: _Extra) -> Any:
        """Any JSON, such as a schema; or a client's own setting, which is ignored."""
        return UNSET if extra.get("ignored") else value

    def _struct(self, value: Any, kind: inspect.StructType, path: Path, extra: _Extra) -> Any:
        if not isinstance(value, dict):
            return self._misfit(value, path, extra, "an object")
        fields = {one.encode_name: one for one in kind.fields}
        taken = {}
        for key, member in value.items():
            if key not in fields:
                self._found.add((*path, key), *self._unknown(key, fields))
                continue
            valid = self.take(member, fields[key].type, (*path, key))
            if valid is not UNSET:
                taken[key] = valid
        for key, one in fields.items():
            if one.required and key not in value:
                self._found.add((*path, key), "This is missing.", f"Add {key}.")
        return taken

    def _dict(self, value: Any, kind: inspect.DictType, path: Path, extra: _Extra) -> Any:
        if not isinstance(value, dict):
            return self._misfit(value, path, extra, "an object with one entry per name")
        self._count(value, kind.max_length, path, "entries")
        taken = {}
        for key, member in value.items():
            self.take(key, kind.key_type, (*path, key), {"is_key": True})
            valid = self.take(member, kind.value_type, (*path, key))
            if valid is not UNSET:
                taken[key] = valid
        return taken

    def _list(self, value: Any, kind: inspect.VarTupleType, path: Path, extra: _Extra) -> Any:
        if not isinstance(value, list | tuple):
            return self._misfit(value, path, extra, "a list")
        self._count(value, kind.max_length, path, "items")
        taken = [self.take(item, kind.item_type, (*path, index)) for index, item in enumerate(value)]
        return [valid for valid in taken if valid is not UNSET]

    def _choice(self, value: Any, kind: inspect.LiteralType, path: Path, extra: _Extra) -> Any:
        if isinstance(value, str) and value in kind.values:
            return value
        words = [str(word) for word in kind.values]
        if not isinstance(value, str):
            return self._misfit(value, path, extra, f"one of {', '.join(words)}")
        message = f"{show(value)} is not one of {', '.join(words)}."
        return self._refuse(path, message, self._guess(value, words))

    def _boolean(self, value: Any, kind: inspect.BoolType, path: Path, extra: _Extra) -> Any:
        if not isinstance(value, bool):
            return self._misfit(value, path, extra, "true or false")
        return value

    def _number(self, value: Any, kind: inspect.IntType | inspect.FloatType, path: Path, extra: _Extra) -> Any:
        is_integer = isinstance(kind, inspect.IntType)
        if type(value) not in ((int,) if is_integer else (int, float)) or value != value:
            return self._misfit(value, path, extra, "an integer" if is_integer else "a number")
        hint = f"Use a number from {kind.ge} to {kind.le}."
        if kind.ge is not None and value < kind.ge:
            return self._refuse(path, f"{show(value)} is less than {kind.ge}.", hint)
        if kind.le is not None and value > kind.le:
            return self._refuse(path, f"{show(value)} is more than {kind.le}.", hint)
        return value

    def _text(self, value: Any, kind: inspect.StrType, path: Path, extra: _Extra) -> Any:
        if not isinstance(value, str):
            return self._misfit(value, path, extra, "a string")
        text, is_written = value, True
        fault = _length_fault(text, kind)
        if fault is None and extra.get("expand"):
            expansion = expand(text, self._environ, self._read_secret)
            is_written = not expansion.taken
            for one in expansion.faults:
                self._refuse(path, *one)
            for one in expansion.missing:
                self._miss(path, one)
            if expansion.faults or expansion.missing:
                return UNSET
            self._keep_secret(*(value for name, value in expansion.taken if name not in PLAIN_VARIABLES))
            text = expansion.text
        fault = fault or _text_fault(text, kind, extra)
        if fault is not None:
            return self._refuse(path, *fault, at_value=not extra.get("is_key"))
        if (is_path := extra.get("is_path")) and is_path(text):
            return os.path.normpath(os.path.join(self._folder, text))
        if secret := extra.get("secret"):
            self._note_secret(text, path, secret, is_written=is_written)
        return text

    def take_variables(self, path: Path, entry: dict[str, Any], files: SecretFiles) -> None:
        """Put the variables of the `envFile` of a server into its `env`, where the entry does not set them itself."""
        name = entry.pop("envFile", None)
        if name is None:
            return
        variables = files.variables(name)
        if isinstance(variables, ValueFault):
            self._miss((*path, "envFile"), variables)
            return
        self._keep_secret(*(value for key, value in variables.items() if key not in PLAIN_VARIABLES))
        entry["env"] = {**variables, **entry.get("env", {})}

    def _miss(self, path: Path, fault: ValueFault) -> None:
        """A variable or secret file that is not there concerns the server that needs it, and no other."""
        if len(path) > 1 and path[0] in SERVER_LISTS:
            self.unresolved.setdefault(str(path[1]), []).append(self._found.problem(path, *fault))
        else:
            self._refuse(path, *fault)

    def _note_secret(self, text: str, path: Path, secret: Any, *, is_written: bool) -> None:
        if callable(secret):
            self._keep_secret(*secret(text))
        elif not _is_plain(path):
            self._keep_secret(text, *_credential(path, text))
            if is_written and _is_credential(path, text):
                self.written_secrets.append(path)

    def _unknown(self, key: str, fields: Mapping[str, Any]) -> ValueFault:
        if key in ELSEWHERE:
            return ValueFault("This key is not supported.", ELSEWHERE[key])
        return ValueFault("Unknown setting.", self._guess(key, fields) or f"Known: {', '.join(fields)}.")

    def _guess(self, word: str, known: Iterable[str]) -> str:
        """The word probably meant. The search is slow, so it ends with the problems that are shown."""
        close = nearest(word, known) if len(self._found.problems) < SHOWN_PROBLEMS else None
        return f'Did you mean "{close}"?' if close else ""

    def _keep_secret(self, *values: str) -> None:
        self.secrets.update(value for value in values if len(value) >= SECRET_MIN_CHARACTERS)

    def _count(self, value: Any, limit: int | None, path: Path, what: str) -> None:
        if limit is not None and len(value) > limit:
            self._found.add(path, f"There are {len(value)} {what}.", f"At most {limit} are allowed.")

    def _misfit(self, value: Any, path: Path, extra: _Extra, expected: str) -> Any:
        hint = ""
        if expected == "a string" and isinstance(value, bool | int | float):
            hint = "Put it in quotes."
        elif isinstance(value, str) and _says(value, expected):
            hint = "Write it without quotes."
        found = _kind_of(value) if extra.get("secret") else _describe(value)
        return self._refuse(path, f"Expected {expected}, found {found}.", hint)

    def _refuse(self, path: Path, message: str, hint: str = "", *, at_value: bool = True) -> Any:
        self._found.add(path, message, hint, at_value=at_value)
        return UNSET


def _bare(kind: inspect.Type) -> inspect.Type:
    return kind.type if isinstance(kind, inspect.Metadata) else kind


def _text_fault(text: str, kind: inspect.StrType, extra: _Extra) -> ValueFault | None:
    fault: ValueFault | None = _length_fault(text, kind)
    if fault is None and (check := extra.get("check")):
        fault = check(text)
    if fault is None and kind.pattern is not None and not re.fullmatch(kind.pattern, text):
        fault = ValueFault(f"{show(text)} can't be used here.", f"It must match {kind.pattern}.")
    return fault


def _length_fault(text: str, kind: inspect.StrType) -> ValueFault | None:
    if kind.min_length is not None and len(text) < kind.min_length:
        return ValueFault("This is empty.", "Give it a value, or remove it.")
    if kind.max_length is not None and len(text) > kind.max_length:
        return ValueFault(f"This has {len(text)} characters.", f"At most {kind.max_length} are allowed.")
    return None


def _is_plain(path: Path) -> bool:
    """Whether the name of a value of `env` or `headers` shows that it is not a secret."""
    group, name = path[-2:]
    if group == "env":
        return name in PLAIN_VARIABLES
    return group == "headers" and str(name).casefold() in PLAIN_HEADERS


def _is_credential(path: Path, text: str) -> bool:
    """Whether a secret is more than a setting: most values of `env` and `headers` are masked without being credentials."""
    if path[-2] in ("env", "headers"):
        return bool(text) and CREDENTIAL_NAME.search(str(path[-1])) is not None
    return not text.startswith(HASHED)


def _credential(path: Path, text: str) -> tuple[str, ...]:
    """The credential in a header such as `Authorization: Bearer x`, without its scheme."""
    scheme, _, rest = text.partition(" ")
    return (rest.strip(),) if path[-2] == "headers" and scheme.isalpha() and rest else ()


def _says(text: str, expected: str) -> bool:
    if expected == "an integer":
        return text.isdecimal()
    return expected == "true or false" and text in ("true", "false")


def _describe(value: Any) -> str:
    if isinstance(value, str):
        return f"the string {show(value)}"
    if isinstance(value, bool):
        return show(value)
    return f"the number {show(value)}" if isinstance(value, int | float) else _kind_of(value)


def _kind_of(value: Any) -> str:
    kinds: dict[type, str] = {
        bool: "true or false",
        int: "a number",
        float: "a number",
        str: "a string",
        list: "a list",
        dict: "an object",
    }
    return kinds.get(type(value), "nothing")
