"""The command line: one file a family of verbs, and nothing that decides anything."""
