"""The manifest: every requirement of the five documents. One whose turn has not come is deferred, with a reason.

S0 is the ecosystem document, S1 the runtime, S2 the tool contract, S3 the conformance invariants, S4 the failure model.
`docs/invariants.md` is generated from it; `tests/test_requirements.py` holds it and the tests together.
"""

from __future__ import annotations

from tests.requirements import conformance, ecosystem, failure_model, runtime, tool_contract
from tests.requirements.entry import Requirement

DOCUMENTS: tuple[tuple[str, tuple[Requirement, ...]], ...] = (
    (ecosystem.TITLE, ecosystem.REQUIREMENTS),
    (runtime.TITLE, runtime.REQUIREMENTS),
    (tool_contract.TITLE, tool_contract.REQUIREMENTS),
    (conformance.TITLE, conformance.REQUIREMENTS),
    (failure_model.TITLE, failure_model.REQUIREMENTS),
)

ALL: tuple[Requirement, ...] = tuple(entry for _, entries in DOCUMENTS for entry in entries)
