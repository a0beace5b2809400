"""Tasks as calendars that people subscribe to, or add to the one that they have: RFC 5545.

`feed_calendar` is a feed of expanded occurrences, `task_calendar` one task with its rule.
"""
