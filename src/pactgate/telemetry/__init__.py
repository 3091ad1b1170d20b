"""What can be observed of a running gateway: log lines, metrics, and the snapshot that the admin API shows."""
