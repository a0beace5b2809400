"""Authentication and authorization: ID tokens, API keys and roles.

May import adapters, config, domain and errors.
"""
