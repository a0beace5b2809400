"""Pull queues: work that is offered to workers, and the claims that workers make."""
