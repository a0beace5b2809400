"""The parts of an app, made from its settings: stores, queues, clocks, the engine's services, telemetry."""
