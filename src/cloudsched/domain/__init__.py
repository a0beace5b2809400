"""WHAT is true: tasks, schedules, plans and decisions. No I/O, no clock, no vendor."""
