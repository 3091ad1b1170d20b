"""Proofs of the settings: what loads, what does not, and what is said about it."""
