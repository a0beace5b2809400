"""The calendar: past and due runs by day, week and month."""
