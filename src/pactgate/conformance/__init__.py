"""The checker: rules over recorded sessions, their verdicts, and reports of them. Nothing here opens a connection."""
