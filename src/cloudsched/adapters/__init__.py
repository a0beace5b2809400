"""WITH whom: one outside thing a file, each behind a port of `cloudsched.engine.ports`."""
