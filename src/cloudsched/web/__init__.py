"""The HTTP side in production: the API (`api`), the authentication of its callers (`auth`), and the deployed functions.

May import the app and everything below it.
"""
