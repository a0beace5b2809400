"""What owners keep beside their tasks: contacts and preferences, calendars, scripts and feeds."""
