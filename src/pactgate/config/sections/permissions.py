"""The sections `callers` and `permissions`: classes of clients, and the rules that allow or deny them tools, prompts and resources.

Nothing configured: every client that is admitted may use everything. Anything configured: only what a rule allows, and what a rule denies
is denied whatever else allows it (D24). Must not: decide about a call; `policy/permissions` does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final

from msgspec import Meta

from pactgate.config.problems import ConfigFindings, Path, ValueFault, nearest, show
from pactgate.config.sections import Section, doc
from pactgate.config.sections.auth import RESERVED
from pactgate.config.selectors import Selector, check_selector, read_selector, servers_of
from pactgate.core.conditions import ConditionError, compile_condition
from pactgate.core.principal import OF_KEYS, OF_SOCKET

EVERYBODY: Final = "*"


def check_condition(text: str) -> ValueFault | None:
    try:
        condition = compile_condition(text)
    except ConditionError as problem:
        return ValueFault(f"{show(text)} can't be used: {problem}.", "Write it as arguments.amount < 500.")
    if not condition.paths and not condition.facts:
        return ValueFault(f"{show(text)} is always the same.", "Name a member of arguments, caller or tool.")
    return None


ClassName = Annotated[str, Meta(max_length=50, pattern="^[A-Za-z0-9][A-Za-z0-9._-]*$")]
SelectorText = Annotated[str, Meta(min_length=1, max_length=300, extra={"check": check_selector})]
ConditionText = Annotated[str, Meta(min_length=1, max_length=1000, extra={"check": check_condition})]
Name = Annotated[str, Meta(min_length=1, max_length=300)]
Selectors = Annotated[SelectorText | Annotated[tuple[SelectorText, ...], Meta(max_length=200)] | None, Meta()]
Names = Annotated[tuple[Name, ...], Meta(max_length=200)]


class CallerClass(Section, frozen=True, kw_only=True):
    """One class of clients. A client belongs to the first class whose members all match it; a class without members has everybody."""

    groups: Annotated[Names, doc("Groups of which the client has at least one.")] = ()
    issuer: Annotated[
        Name | None,
        doc(
            "The issuer of its token, one of `auth.issuers`. Also: `keys` (clients with an API key), `socket` (users at the Unix socket)."
        ),
    ] = None
    keys: Annotated[Names, doc("Names of API keys.")] = ()
    tokens: Annotated[
        Names,
        doc(
            "Names in `auth.tokens`. Also: `anonymous` (clients without a token), `generated` (the token made for one run), `local` "
            "(stdio), `library` (the program that holds the gateway)."
        ),
    ] = ()
    view: Annotated[
        Annotated[str, Meta(max_length=50)] | None,
        doc("The view in `views` that its clients see at `/mcp`. It gives no right and takes none away."),
    ] = None


class PermissionRule(Section, frozen=True, kw_only=True):
    """One rule. It allows or denies; a denial wins over every rule that allows."""

    allow: Annotated[
        Selectors,
        doc(
            "What the rule allows: patterns of full names (`crm.get_*`, for tools and prompts) and of full URIs "
            "(`crm+file:///*`, for resources), `server:crm` (everything of a server), `category:query`, `annotation:readOnly`, "
            "`effect:network`. `*` is everything."
        ),
    ] = None
    deny: Annotated[Selectors, doc("What the rule denies, instead of `allow`.")] = None
    to: Annotated[Name | Names, doc('The classes in `callers` the rule is for; `"*"`: all clients.')]
    when: Annotated[
        ConditionText | None,
        doc(
            "The rule applies only if this CEL expression is true, as `arguments.amount < 500` or `'oncall' in caller.groups`."
        ),
    ] = None
    unless: Annotated[ConditionText | None, doc("The rule does not apply if this CEL expression is true.")] = None
    say: Annotated[
        Annotated[str, Meta(min_length=1, max_length=500)] | None,
        doc(
            "What a client is told that this rule stops. Without it, a denied tool does not exist for the client. With `allow`, what a "
            "client is told whose arguments do not meet the condition."
        ),
    ] = None

    @property
    def selectors(self) -> tuple[Selector, ...]:
        given = self.deny if self.allow is None else self.allow
        return tuple(map(read_selector, _many(given)))

    @property
    def classes(self) -> tuple[str, ...]:
        return _many(self.to)


Callers = Annotated[
    dict[ClassName, CallerClass],
    doc("Classes of clients by name, for `permissions`. The first that matches a client is its class.", max_length=200),
]
Permissions = Annotated[
    tuple[PermissionRule, ...],
    doc(
        "Who may use which tools, prompts and resources. Without rules, every admitted client may use all. With rules, only what one "
        "allows; what one denies stays denied.",
        max_length=1000,
    ),
]


def check_permissions(settings: Mapping[str, Any], found: ConfigFindings) -> None:
    """Check classes and rules against each other and against the servers and tokens. The values are valid by themselves."""
    callers, rules = settings.get("callers", {}), settings.get("permissions", [])
    servers = tuple(settings.get("servers", {}))
    _check_classes(callers, settings.get("auth", {}), found)
    named: set[str] = set()
    for at, rule in enumerate(rules):
        path: Path = ("permissions", at)
        _check_members(rule, path, found)
        named.update(_check_to(rule, callers, path, found))
        for word in ("allow", "deny"):
            if word in rule:
                _check_servers(rule[word], servers, (*path, word), found)
    _check_shadows(rules, callers, found)
    for name in callers:
        if name not in named and not callers[name].get("view"):
            hint = 'Its clients may use only what is allowed to "*".' if rules else "There are no permissions."
            found.warn(("callers", name), "No rule is for this class.", hint)


def _check_classes(callers: Mapping[str, Any], auth: Mapping[str, Any], found: ConfigFindings) -> None:
    tokens = (*auth.get("tokens", {}), *sorted(RESERVED))
    issuers = [one["issuer"] for one in auth.get("issuers", ()) if "issuer" in one]
    before: dict[str, Any] = {}
    for name, one in callers.items():
        path: Path = ("callers", name)
        first = next((other for other, wider in before.items() if _has_all_of(wider, one)), None)
        if first is not None:
            found.add(path, "No client can be of this class.", f"{show(first)} before it has them all; put it later.")
        before[name] = one
        for at, token in enumerate(one.get("tokens", ())):
            if token not in tokens:
                message = f"There is no token {show(token)} in auth.tokens."
                found.add((*path, "tokens", at), message, _nearest(token, tokens), at_value=True)
        _check_issuer(one, issuers, path, found)


def _has_all_of(wider: Mapping[str, Any], narrower: Mapping[str, Any]) -> bool:
    """Whether every client of the one class would be of the other as well."""
    if wider.get("issuer") not in (None, narrower.get("issuer")):
        return False
    named = [{(word, one) for word in ("keys", "tokens") for one in each.get(word, ())} for each in (wider, narrower)]
    groups = [set(each.get("groups", ())) for each in (wider, narrower)]
    return all(not wide or (narrow and narrow <= wide) for wide, narrow in (named, groups))


def _check_issuer(one: Mapping[str, Any], issuers: Sequence[str], path: Path, found: ConfigFindings) -> None:
    """An issuer nobody has, and what no kind of credential has all of: tokens have no groups, keys no issuer but their own."""
    issuer, keys, tokens, groups = (one.get(word) for word in ("issuer", "keys", "tokens", "groups"))
    if issuer is not None and issuer not in (known := (*issuers, OF_KEYS, OF_SOCKET)):
        message = f"There is no issuer {show(issuer)} in auth.issuers."
        found.add((*path, "issuer"), message, _nearest(issuer, known), at_value=True)
    elif issuer == OF_KEYS or issuer is None:
        if tokens and not keys and (groups or issuer):
            hint = "Tokens of the configuration have neither groups nor an issuer; make two classes of it."
            found.add(path, "No client can be of this class.", hint)
    elif keys or tokens or (issuer == OF_SOCKET and groups):
        hint = "Nobody has all of its members; make two classes of it."
        found.add(path, "No client can be of this class.", hint)
    if groups and issuer is None and not keys and len(issuers) > 1:
        message = "Every issuer can put its clients into these groups."
        found.warn((*path, "groups"), message, "Add the issuer whose groups are meant.")


def _check_members(rule: Mapping[str, Any], path: Path, found: ConfigFindings) -> None:
    if ("allow" in rule) == ("deny" in rule):
        found.add(path, "A rule has either allow or deny.", "Make two rules of it." if "allow" in rule else "Add one.")
    for word in ("allow", "deny"):
        if word in rule and not rule[word]:
            found.add(
                (*path, word), "This selects nothing, so the rule never applies.", "Name something, or remove it."
            )
    asks_arguments = any(compile_condition(rule[word]).paths for word in ("when", "unless") if word in rule)
    if "allow" in rule and "say" in rule and not asks_arguments:
        hint = "With allow, it needs a condition on arguments."
        found.add((*path, "say"), "Nobody is ever told this.", hint)


def _check_to(rule: Mapping[str, Any], callers: Mapping[str, Any], path: Path, found: ConfigFindings) -> Sequence[str]:
    if "to" not in rule:
        return ()
    names = _many(rule["to"])
    if not names:
        found.add((*path, "to"), "This names no class, so the rule never applies.", 'Name a class of callers, or "*".')
    for at, name in enumerate(names):
        if name != EVERYBODY and name not in callers:
            place = (*path, "to") if isinstance(rule["to"], str) else (*path, "to", at)
            found.add(place, f"There is no class {show(name)}.", _nearest(name, callers), at_value=True)
    return names


def _check_servers(given: Any, servers: Sequence[str], path: Path, found: ConfigFindings) -> None:
    """An unknown server is an error; a pattern that can't match a name of any server is a warning, as a server may be added later."""
    for at, text in enumerate(_many(given)):
        selector = read_selector(text)
        if servers_of(selector, servers):
            continue
        place = path if isinstance(given, str) else (*path, at)
        if text.startswith("server:"):
            found.add(
                place, f"There is no server {show(selector.value)}.", _nearest(selector.value, servers), at_value=True
            )
        else:
            named = text.partition(".")[0].partition("+")[0]
            hint = _nearest(named, servers) if named != text else "Write full names, as crm.get_order."
            found.warn(place, f"No server has anything of the name {show(text)}.", hint, at_value=True)


def _check_shadows(rules: Sequence[Mapping[str, Any]], callers: Mapping[str, Any], found: ConfigFindings) -> None:
    """A rule that never applies, because another one denies all of it to all its classes whatever the call."""
    denials = [
        (at, rule) for at, rule in enumerate(rules) if "deny" in rule and "when" not in rule and "unless" not in rule
    ]
    for at, rule in enumerate(rules):
        is_denial = "deny" in rule
        for by, denial in denials:
            if by == at or "allow" in denial or (is_denial and (by > at or "say" in rule)):
                continue
            if _covers(denial, rule, callers):
                hint = f"permissions[{by}] denies all of it to all its classes."
                found.add(("permissions", at), "This rule never applies.", hint)
                break


def _covers(denial: Mapping[str, Any], rule: Mapping[str, Any], callers: Mapping[str, Any]) -> bool:
    wide, narrow = _many(denial.get("to", ())), _many(rule.get("to", ()))
    if EVERYBODY not in wide and not (narrow and set(narrow) <= set(wide)):
        return False
    denied = [read_selector(text) for text in _many(denial["deny"])]
    selected = [read_selector(text) for text in _many(rule.get("allow", rule.get("deny", ())))]
    return bool(selected) and all(any(one.covers(other) for one in denied) for other in selected)


def _many(given: str | Sequence[str] | None) -> tuple[str, ...]:
    return () if given is None else (given,) if isinstance(given, str) else tuple(given)


def _nearest(word: str, known: Sequence[str] | Mapping[str, Any]) -> str:
    close = nearest(word, known)
    return f'Did you mean "{close}"?' if close else f"There are: {', '.join(known) or 'none'}."
