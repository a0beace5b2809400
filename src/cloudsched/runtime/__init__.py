"""The parts of an app, made from its settings: stores, queues, clocks, the engine's services, telemetry.

May import adapters, engine, domain and config. Only `app.py` and the packages above it import this one.
"""
