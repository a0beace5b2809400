"""The schedule that a task carries: recurrences with calendars applied, in words, as iCalendar and as a preview."""
