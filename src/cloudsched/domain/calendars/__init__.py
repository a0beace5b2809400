"""Calendars of days on which schedules do not run, such as holidays, and what they do to a schedule's occurrences.

`days` is one calendar, `free_days` what several leave free, `calendar_recurrence` a schedule's instants with them.
"""
