"""The instants at which a recurrence fires: RRULE, cron, ISO 8601 and time zones.

Imports `errors` and nothing else of cloudsched.
"""
