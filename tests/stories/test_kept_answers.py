"""What people have answered is kept while broken code is deployed and processes die: the benchmark, a few rounds."""

from benchmarks.answers import FAULTS, run


def test_an_accepted_answer_survives_broken_releases_and_kills() -> None:
    """Each answer that was accepted is taken once by the mended code, whatever was broken."""
    counts = run(len(FAULTS), seed=1)
    assert counts["accepted"] > 0
    assert (counts["lost"], counts["taken twice"]) == (0, 0), counts
