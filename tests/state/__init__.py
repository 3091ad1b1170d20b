"""Proofs of what outlives a request: the bounds of the stores, and what happens when one fails."""
