"""Captures of sessions: the file format, recording, relaying and replaying. `conformance` checks them."""
