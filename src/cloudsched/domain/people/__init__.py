"""When and how a person may be reached: quiet hours, digests and channels, as pure functions.

May import documents and recurrence.
"""
