"""Tracing and auth: contexts of traces, credentials, and the headers that go with a call."""
