"""When a schedule fires: RRULE, cron, ISO 8601, time zones, and descriptions in words.

Imports `errors` and nothing else of cloudsched.
"""
