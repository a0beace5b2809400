"""What the tests try is fixed: no clock, no chance and no other test decides it, or whether a test passes."""

from __future__ import annotations

import ast
import re
from pathlib import Path

TESTS = Path(__file__).parents[1]
STOPWATCHES = {"thread_time", "process_time", "perf_counter", "thread_time_ns", "process_time_ns", "perf_counter_ns"}
UNSEEDED = {"random", "choice", "choices", "shuffle", "randint", "randrange", "uniform", "sample", "getrandbits"}
TELLTALE = re.compile("|".join((*STOPWATCHES, "random", "Random", "settings", "register_profile")))
"""One of these words is in each file that has a fault; the others need not be parsed."""
EXCUSED = {"architecture/test_fixed_examples.py"}


def list_limits(path: Path) -> list[str]:
    """Return where a test's file measures time, draws without a seed, or has examples that a clock may end."""
    found: list[str] = []
    text = path.read_text("utf-8")
    if not TELLTALE.search(text):
        return found
    nodes = list(ast.walk(ast.parse(text)))
    modules = {each.asname or each.name for node in nodes if isinstance(node, ast.Import) for each in node.names}
    for node in nodes:
        match node:
            case ast.Attribute(attr=name) | ast.alias(name=name) if name in STOPWATCHES:
                found.append(f"{path}:{node.lineno}: {name}: count calls (tests/call_counts.py)")
            case ast.Attribute(value=ast.Name(id="random"), attr=name) if name in UNSEEDED and "random" in modules:
                found.append(f"{path}:{node.lineno}: random.{name}: take a Random of a fixed seed")
            case ast.Call(func=ast.Name(id="Random") | ast.Attribute(attr="Random"), args=[]):
                found.append(f"{path}:{node.lineno}: Random(): give it a seed")
            case ast.Call(func=ast.Name(id="settings") | ast.Attribute(attr="register_profile"), keywords=keywords):
                said = {each.arg: ast.unparse(each.value) for each in keywords}
                if said.get("deadline", "None") != "None":
                    found.append(f"{path}:{node.lineno}: deadline: count calls (tests/call_counts.py)")
                if "too_slow" not in said.get("suppress_health_check", "too_slow"):
                    found.append(f"{path}:{node.lineno}: suppress_health_check lacks HealthCheck.too_slow")
                if said.get("derandomize", "True") != "True":
                    found.append(f"{path}:{node.lineno}: derandomize")
    return found


def test_no_test_has_a_stopwatch_or_unseeded_dice() -> None:
    """Waiting for a condition is bounded by `time.monotonic`, which only ends a test that fails."""
    paths = [each for each in TESTS.rglob("*.py") if each.relative_to(TESTS).as_posix() not in EXCUSED]
    assert [limit for each in sorted(paths) for limit in list_limits(each)] == []
