"""Who may use what: the rules of `permissions`, compiled once and looked up per call (D24)."""
