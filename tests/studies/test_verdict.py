"""Whether groups of runs can be told apart."""

from ckgconv.studies.verdict import Values, welch


def test_groups_are_told_apart_only_where_a_test_says_so():
    one, other = Values("one", [1.0, 1.1, 0.9]), Values("other", [5.0, 5.1, 4.9])
    assert welch(one, other).told_apart
    assert str(welch(one, other)).startswith("told apart, p = ")
    assert str(welch(one, Values("near", [1.05, 0.95, 1.1]))).startswith("not told apart, p = ")


def test_no_test_says_why():
    one = Values("one", [1.0, 1.1], {"x"})
    for other, why in (
        (Values("single", [1.0], {"x"}), "it needs 2 finished runs of each"),
        (Values("elsewhere", [1.0, 1.2], {"y"}), "they were not tested on the same data"),
    ):
        assert welch(one, other).why == why
        assert not welch(one, other).told_apart
    still = Values("still", [1.0, 1.0])
    assert welch(still, still).why == "no run differs from the others of its group"
