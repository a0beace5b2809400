"""Who is calling, and what they may do: ID tokens, API keys, and the roles that they lead to.

May import adapters, config, domain and errors.
"""
