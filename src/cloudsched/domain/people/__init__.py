"""How a person may be reached: contacts and channels, as pure functions.

May import documents.
"""
