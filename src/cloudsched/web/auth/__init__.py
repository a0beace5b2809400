"""Authentication and authorization: ID tokens, API keys and roles."""
