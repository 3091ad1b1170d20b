"""The bench measures; these tests make sure it would notice."""
