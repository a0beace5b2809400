"""What a task may have beside the core, a file for each: follow-ups, deliveries, callbacks, pings."""
