"""What can fail only when servers coexist behind one client: the two documented hazards, and more of their kind."""
