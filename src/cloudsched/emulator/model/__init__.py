"""The emulated service as pure code: queues, tasks, retries, rates and faults."""
