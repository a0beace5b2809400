"""Tasks as calendars that people subscribe to, or add to the one that they have: RFC 5545.

`calendar_event` is one event, `feed_calendar` a feed of expanded occurrences, `task_calendar` one task with its rule.
"""
