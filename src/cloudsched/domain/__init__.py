"""The pure core: documents, recurrence, and the transitions between states.

There is no I/O, and time and randomness are arguments. Imports `errors` and nothing else of cloudsched.
"""
