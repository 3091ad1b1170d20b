"""`pactgate doctor`: one module for each group of checks."""
