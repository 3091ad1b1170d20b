"""The sections of the configuration file, one module each."""
