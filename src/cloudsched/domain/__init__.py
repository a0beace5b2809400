"""What is true without any I/O: documents, recurrence, and the transitions between states.

Pure: time and chance are arguments. Imports `errors` and nothing else of cloudsched.
"""
