"""The migrations of the outbox's table, in their order. They import nothing but Django."""
