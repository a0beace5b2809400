"""Every change of state, as a pure function of the stored task, the event and the time."""
