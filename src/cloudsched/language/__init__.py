"""Plain words to schedules: "every weekday at 9 except Fridays" becomes the schedule that was meant, or a question.

A phrase goes through tokens, a lexicon of word classes and a grammar into clauses, and from these into a schedule;
every word belongs to the schedule or to its title, or the phrase is refused. The package may import the schedules of
the domain, the errors, and dateutil for calendar arithmetic; nothing else of cloudsched.
"""

from cloudsched.language.read import read
from cloudsched.language.result import Alternative, Problem, Reading

__all__ = ["Alternative", "Problem", "Reading", "read"]
