"""How a proxy breaks exactly what each check is about: a switch for each code. The files beside this one are the list, one a family."""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules

from tests.support.breaking_proxy import Switch

SWITCHES: dict[str, Switch] = {}
for found in iter_modules(__path__, f"{__name__}."):
    if not found.name.endswith(".words"):
        SWITCHES |= import_module(found.name).SWITCHES
