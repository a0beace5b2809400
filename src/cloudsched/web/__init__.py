"""What answers HTTP in production: the API (`api`), who may call it (`auth`), and the three deployed functions.

May import the app and everything below it.
"""
