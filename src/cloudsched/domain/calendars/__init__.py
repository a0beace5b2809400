"""Calendars of days on which schedules do not run, such as holidays, and what they do to a recurrence's occurrences.

`days` is one calendar, `free_days` what several leave free, `calendar_recurrence` a recurrence's instants with them.
May import `domain.recurrence` and errors.
"""
