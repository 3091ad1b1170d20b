"""Results and errors arrive with all their members and blocks."""

from __future__ import annotations

from pactgate.conformance.gateway.check import FidelityCheck
from pactgate.conformance.gateway.script import ScriptedTool
from pactgate.conformance.rule import RequirementLevel


class UnknownResultMembersVanish(FidelityCheck):
    """A member of a result that nobody knows arrives.

    What it checks
        A tool answers with a member `x-gwp` beside `content`; the client gets it.

    Why
        Revisions and extensions add members. A gateway that knows one revision only cuts off what clients and servers agreed on.

    Reference
        Schema reference, Result: a result may have further members; all revisions.
    """

    code = "GWP-006"
    spec = "schema#result"
    tools = (ScriptedTool(name="gwp006_@", result='"content":[],"x-gwp":{"kept":[1,null]}'),)
    pointers = ("/x-gwp",)


class UnknownContentTypesBreak(FidelityCheck):
    """A content block of a type that nobody knows arrives.

    What it checks
        A tool answers with a text and a block of the type `hologram`; the client gets both.

    Why
        A new type of content reaches clients that know it only if what is between does not need to know it. Often the whole result
        is lost.
    """

    code = "GWP-007"
    tools = (
        ScriptedTool(
            name="gwp007_@",
            result='"content":[{"type":"text","text":"a"},{"type":"hologram","layers":[1,2]}]',
        ),
    )
    pointers = ("/content",)


class BlockMembersVanish(FidelityCheck):
    """A content block arrives with all its members.

    What it checks
        A tool answers with a text that has annotations, `_meta` and a member that nobody knows; the client gets all of it.

    Why
        Annotations say for whom a text is; other members belong to extensions.
    """

    code = "GWP-008"
    tools = (
        ScriptedTool(
            name="gwp008_@",
            result='"content":[{"type":"text","text":"a","annotations":{"audience":["user"],"priority":0.5,"x":1},'
            '"_meta":{"example.com/a":1},"x-gwp":true}]',
        ),
    )
    pointers = ("/content",)


class ResultMetaVanishes(FidelityCheck):
    """The `_meta` of a result arrives, keys of others included.

    What it checks
        A tool answers with two keys of other organisations in `_meta`; the client gets both as they were. Further keys are no
        failure.

    Why
        `_meta` is how servers and clients extend the protocol without asking those between them.

    How to fix
        Pass the text of the result on, instead of a value that was parsed and written again. Add keys of your own under your own
        prefix.

    Reference
        Base protocol, _meta; all revisions.
    """

    code = "GWP-009"
    spec = "basic/index#meta"
    tools = (ScriptedTool(name="gwp009_@", meta='"example.com/a":{"n":1,"none":null},"example.org/b":"x"'),)
    pointers = ("/_meta/example.com~1a", "/_meta/example.org~1b")


class StructuredContentVanishes(FidelityCheck):
    """Structured content and content arrive side by side.

    What it checks
        A tool with an output schema answers with both, and with texts that differ; the client gets both.

    Why
        Programs read one, models the other. A tool with an output schema must return structured content, and clients refuse its
        result without.

    Reference
        Tools, Output Schema: a server with an output schema must provide structured results; 2025-06-18 and later.
    """

    code = "GWP-010"
    spec = "server/tools#output-schema"
    level = RequirementLevel.MUST
    tools = (
        ScriptedTool(
            name="gwp010_@",
            members='"inputSchema":{"type":"object"},"outputSchema":{"type":"object","properties":{"a":{"type":"integer"}}}',
            result='"content":[{"type":"text","text":"in words"}],"structuredContent":{"a":1}',
        ),
    )
    pointers = ("/content", "/structuredContent")


class LargeResultsBreak(FidelityCheck):
    """A result of 512 KiB arrives whole.

    What it checks
        A tool answers with a text of 512 KiB; the client gets every character.

    Why
        Files and pages are of this size. A gateway that cuts them without a word hands out half a file as the whole.

    How to fix
        Raise the limit, or refuse what is larger with an error that says so.
    """

    code = "GWP-011"
    tools = (
        ScriptedTool(name="gwp011_@", result=f'"content":[{{"type":"text","text":"{"0123456789abcdef" * 32768}"}}]'),
    )
    pointers = ("/content",)


class ErrorsChange(FidelityCheck):
    """An error arrives with its code and data.

    What it checks
        A tool answers with an error that has a code of its own and data; the client gets the same code and data.

    Why
        Clients decide by the code whether to try again, to sign in or to ask. An error as a text, or with another code, can only be
        shown.

    How to fix
        Pass the error object of the server on.

    Reference
        JSON-RPC 2.0, Error object; all revisions.
    """

    code = "GWP-015"
    spec = "basic/index#responses"
    tools = (
        ScriptedTool(
            name="gwp015_@",
            error='{"code":-31999,"message":"gwp says no","data":{"reason":"gwp","n":7}}',
        ),
    )
    member = "error"
    pointers = ("/code", "/data")


class ToolErrorsChange(FidelityCheck):
    """A failed tool call is still a failed tool call.

    What it checks
        A tool answers with `isError: true` and a text; the client gets a result with both, not an error and not a success.

    Why
        The model sees the text and corrects itself. Without the flag the failure looks like a success.

    Reference
        Tools, Error Handling; all revisions.
    """

    code = "GWP-016"
    spec = "server/tools#error-handling"
    tools = (ScriptedTool(name="gwp016_@", result='"content":[{"type":"text","text":"disk full"}],"isError":true'),)
    pointers = ("/content", "/isError")


class ArraysAsStructuredContentBreak(FidelityCheck):
    """Structured content that is no object arrives at a modern client.

    What it checks
        A tool of a modern server answers with an array as structured content; a modern client gets it.

    Why
        Since 2026-07-28 structured content is any JSON value.

    Reference
        Tools, Structured Content; 2026-07-28.
    """

    code = "GWP-031"
    spec = "server/tools#structured-content"
    servers = ("mh", "dh", "ms")
    eras = ("modern",)
    since = "2026-07-28"
    tools = (ScriptedTool(name="gwp031_@", result='"content":[],"structuredContent":[1,"two",null]'),)
    pointers = ("/structuredContent",)


class ContentOrderChanges(FidelityCheck):
    """Content blocks arrive in their order, equal ones included.

    What it checks
        A tool answers with six blocks, two of them equal; the client gets six in the same order.

    Why
        Text and pictures refer to each other by their order.
    """

    code = "GWP-033"
    tools = (
        ScriptedTool(
            name="gwp033_@",
            result='"content":[{"type":"text","text":"3"},{"type":"text","text":"1"},{"type":"text","text":"1"},'
            '{"type":"image","data":"AAAA","mimeType":"image/png"},{"type":"text","text":""},{"type":"text","text":"2"}]',
        ),
    )
    pointers = ("/content",)


class StructuredContentAloneVanishes(FidelityCheck):
    """Structured content arrives also from a tool that returns nothing else and declares no output schema.

    What it checks
        A tool without an output schema returns structured content and an empty `content`; the client gets it.

    Why
        Servers do so. A gateway that passes on only what is declared, or only what has a text beside it, loses the whole result.

    How to fix
        Pass the result on as the server wrote it.

    Reference
        Tools, Structured Content: the text beside it is a SHOULD, the output schema optional; since 2025-06-18.
    """

    code = "GWP-034"
    spec = "server/tools#structured-content"
    tools = (ScriptedTool(name="gwp034_@", result='"content":[],"structuredContent":{"a":34}'),)
    pointers = ("/structuredContent",)
