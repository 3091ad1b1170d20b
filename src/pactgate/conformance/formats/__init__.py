"""A report in the forms people and programs read. Each form is one function from report to text; none decides anything."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import Final

from pactgate.conformance.formats.as_github import as_github
from pactgate.conformance.formats.as_json import as_json
from pactgate.conformance.formats.as_junit import as_junit
from pactgate.conformance.formats.as_markdown import as_markdown
from pactgate.conformance.formats.as_sarif import as_sarif
from pactgate.conformance.formats.as_svg import as_svg
from pactgate.conformance.formats.as_text import as_text
from pactgate.conformance.report import ComplianceReport


class ReportFormat(StrEnum):
    TEXT = "text"
    JSON = "json"
    JUNIT = "junit"
    SARIF = "sarif"
    MARKDOWN = "markdown"
    GITHUB = "github"
    SVG = "svg"


RENDER: Final[dict[ReportFormat, Callable[[ComplianceReport], str]]] = {
    ReportFormat.TEXT: as_text,
    ReportFormat.JSON: as_json,
    ReportFormat.JUNIT: as_junit,
    ReportFormat.SARIF: as_sarif,
    ReportFormat.MARKDOWN: as_markdown,
    ReportFormat.GITHUB: as_github,
    ReportFormat.SVG: as_svg,
}
