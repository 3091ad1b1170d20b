"""Recorded sessions: the file format, and how to get at the bytes. Judging them is `conformance`'s task."""
