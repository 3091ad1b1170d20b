"""What can be called: connected servers, their tools, and the names they go by."""
