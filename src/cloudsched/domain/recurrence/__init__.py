"""The instants at which a recurrence fires: RRULE, cron, ISO 8601 and time zones."""
