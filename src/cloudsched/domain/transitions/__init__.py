"""Every change of state as a pure function of what was read, the event and the time.

May import `domain.documents`, `domain.recurrence` and errors.
"""
