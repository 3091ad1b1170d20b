"""The words everybody uses: values, failures, the execution context, events. Frozen, and without I/O."""
