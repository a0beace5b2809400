"""The whole product in one process: `cloudsched dev`, `cloudsched serve`, and apps inside web apps."""
