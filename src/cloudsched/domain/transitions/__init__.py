"""Every change of state, as a pure function of the stored task, the event and the time.

May import `domain.documents`, `domain.schedules` and errors.
"""
