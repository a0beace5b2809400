"""The dashboard: pages rendered over the HTTP API's client, and nothing else of the product."""
