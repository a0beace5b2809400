"""The whole product in one process: the local stack for development, and `cloudsched serve` for one small server."""
