"""Upstreams in processes of their own. Each has one tool, `greet`, that says which server answered."""
