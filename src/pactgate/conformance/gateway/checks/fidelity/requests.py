"""Arguments and params reach the server as the client wrote them."""

from __future__ import annotations

from pactgate.conformance.gateway.check import FidelityCheck
from pactgate.conformance.gateway.script import ScriptedTool


class ArgumentCheck(FidelityCheck):
    """The server gets the arguments of a call as they were written.

    How to fix
        Pass the text of the arguments on, instead of a value that was parsed and written again.

    Reference
        Nothing in the specification lets an intermediary change arguments; all revisions.
    """

    spec = "server/tools#calling-tools"
    request_pointers = ("/arguments",)


class ArgumentNumbersChange(ArgumentCheck):
    """Numbers in arguments reach the server.

    What it checks
        A client calls with integers beyond 2^53 and numbers beyond a double; the server gets the same numbers.

    Why
        An identifier that changes on its way selects something else, which is then read, or deleted.
    """

    code = "GWP-023"
    tools = (ScriptedTool(name="gwp023_@"),)
    arguments = '{"id":9007199254740993,"wide":18446744073709551616,"huge":1e400,"digits":0.30000000000000004}'


class ArgumentValuesChange(ArgumentCheck):
    """Nulls, empty values and text in arguments reach the server.

    What it checks
        A client calls with null, empty values, an empty member name, escapes and a deep value; the server gets the same.

    Why
        Null often means "delete this". Dropped or filled in, the call does something else.

    How to fix
        Pass the text of the arguments on, instead of a value that was parsed and written again. Fill in no defaults.
    """

    code = "GWP-024"
    tools = (ScriptedTool(name="gwp024_@"),)
    arguments = (
        '{"none":null,"text":"caf\\u00e9 \\ud83d\\ude00 \\u0000","list":[],"object":{},"":"empty name",'
        '"deep":{"a":{"b":{"c":{"d":[[null]]}}}},"a/b~c":true}'
    )


class ArgumentNotationChanges(ArgumentCheck):
    """Arguments keep their order and the notation of their numbers.

    What it checks
        A client calls with members in no alphabetical order, 1.0 and 1E+2; the server gets them as they were written.

    Why
        Servers sign and digest arguments, and some languages tell 1 and 1.0 apart.
    """

    code = "GWP-025"
    tools = (ScriptedTool(name="gwp025_@"),)
    arguments = '{"zebra":1.0,"apple":1,"10":1E+2,"2":[]}'
    as_written = True


class RequestMetaVanishes(FidelityCheck):
    """The `_meta` of a request reaches the server, keys of others included.

    What it checks
        A client calls with a key of another organisation in `_meta`; the server gets it as it was. Further keys are no failure.

    Why
        Tenants, experiments and extensions travel in `_meta`.

    How to fix
        Pass on the keys that you do not own.

    Reference
        Base protocol, _meta; all revisions.
    """

    code = "GWP-026"
    spec = "basic/index#meta"
    tools = (ScriptedTool(name="gwp026_@"),)
    meta = '"example.com/tenant":{"n":1,"none":null}'
    request_pointers = ("/_meta/example.com~1tenant",)


class RequestMembersVanish(FidelityCheck):
    """A member of the params that nobody knows reaches the server.

    What it checks
        A client calls with a member `x-gwp` beside `arguments`; the server gets it.

    Why
        Extensions add members to requests. A gateway that knows one revision only cuts them off.

    How to fix
        Pass on the members that you do not know.

    Reference
        Schema reference, CallToolRequest; all revisions.
    """

    code = "GWP-027"
    spec = "schema#calltoolrequestparams"
    tools = (ScriptedTool(name="gwp027_@"),)
    params = '"x-gwp":{"kept":[1,null]}'
    request_pointers = ("/x-gwp",)
