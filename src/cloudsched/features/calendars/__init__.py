"""Calendars: days on which tasks do not run, from lists, files that are fetched, and public holidays."""
