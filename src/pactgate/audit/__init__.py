"""The audit log: one record per tool call, chained by hashes, and the story of one call."""
