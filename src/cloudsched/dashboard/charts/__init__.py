"""Charts as SVG: pure functions of times and numbers."""
