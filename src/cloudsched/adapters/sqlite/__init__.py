"""The embedded store on SQLite, for laptops, tests and the simulation.

May import `engine.ports` and the domain.
"""
