"""Compares what is stored, tasks and open runs, with the handlers of the code at hand."""
