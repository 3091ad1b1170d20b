"""What one client asks and hears is no matter of another."""
