"""What a gateway started ends with it."""
