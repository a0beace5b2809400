"""What is raised where a rule does not hold."""

from __future__ import annotations


class Broken(Exception):
    """A rule does not hold."""
