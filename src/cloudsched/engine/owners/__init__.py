"""What owners keep beside their tasks: contacts and preferences, calendars, scripts and feeds.

`follow_changes` plans the tasks again that depend on one of these. May import `engine.tasks` and what is below it.
"""
