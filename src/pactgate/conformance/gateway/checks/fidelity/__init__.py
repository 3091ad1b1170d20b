"""What passes must arrive as it was sent."""
