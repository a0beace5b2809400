"""Settings, read from the environment once and handed down as one frozen object."""
