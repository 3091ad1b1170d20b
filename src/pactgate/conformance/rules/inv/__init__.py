"""INV-001 to INV-007: the documented invariants of a session. Their ids, categories and verdicts are fixed."""
