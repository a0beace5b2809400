"""The HTTP API: operations, request bodies, responses, problems and the OpenAPI document."""
