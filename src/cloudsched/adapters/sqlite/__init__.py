"""The embedded store on SQLite, for laptops, tests and the simulation."""
