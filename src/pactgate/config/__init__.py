"""Settings: one file, the environment and the command line become one frozen `Config`, or every problem at once."""
