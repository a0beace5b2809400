"""When a schedule fires: RRULE, cron, ISO 8601, time zones, and the read-back in words.

Imports `errors` and nothing else of cloudsched.
"""
