"""Pull queues: work that is offered to workers, and the claims that workers make.

May import the execution of attempts, locks and ports.
"""
