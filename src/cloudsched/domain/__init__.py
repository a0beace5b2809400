"""The pure core: documents, recurrence, and the transitions between states.

No I/O; time and randomness are arguments. Imports `errors` and nothing else of cloudsched.
"""
