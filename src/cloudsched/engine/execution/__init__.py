"""Deliveries of dispatches, from authentication to the commit of the outcome."""
