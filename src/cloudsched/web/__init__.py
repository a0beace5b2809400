"""THROUGH what: the HTTP API, the executor's and the sweep's endpoints, the local stack."""
