"""What a task may have beside the core, a file for each: budgets, follow-ups, deliveries, callbacks, pings."""
