"""The schedule that a task carries: recurrences, what adjusts them, in words, as iCalendar and as a preview."""
