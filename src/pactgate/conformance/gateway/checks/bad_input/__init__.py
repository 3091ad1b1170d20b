"""What clients send by mistake or on purpose is refused at the front door, which goes on serving."""
