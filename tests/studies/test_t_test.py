import pytest
from scipy.stats import ttest_ind

from ckgconv import InputError
from ckgconv.studies.t_test import Sample, sample, t_test

ONE, OTHER = [0.71, 0.74, 0.69, 0.75], [0.66, 0.70, 0.65, 0.69, 0.68]


@pytest.mark.parametrize("equal_variance", [True, False])
def test_agrees_with_the_test_on_raw_values(equal_variance):
    ours = t_test(sample(ONE), sample(OTHER), higher_is_better=True, equal_variance=equal_variance)
    theirs = ttest_ind(ONE, OTHER, equal_var=equal_variance)
    assert ours.two_sided == pytest.approx(theirs.pvalue, rel=1e-9)
    assert ours.one_sided == pytest.approx(theirs.pvalue / 2, rel=1e-9)
    assert ours.t == pytest.approx(theirs.statistic, rel=1e-9)


def test_samples_are_printed_as_in_a_table():
    samples = (Sample(0.25, 0.0012, 4), Sample(98.423, 0.155, 4), Sample(60.0, 12.25, 5), Sample(0.05, 0.0, 4))
    assert [str(each) for each in samples] == ["0.2500 ± 0.0012", "98.423 ± 0.155", "60.0 ± 12.2", "0.05 ± 0"]


def test_lower_may_be_better():
    test = t_test(sample(ONE), sample(OTHER), higher_is_better=False)
    assert test.t < 0
    assert test.one_sided > 0.9


def test_printed_values_by_hand():
    """t = 0.0023 / √((0.0018² + 0.0012²) / 4), six degrees of freedom."""
    test = t_test(Sample(0.2477, 0.0018, 4), Sample(0.2500, 0.0012, 4), higher_is_better=False)
    assert test.t == pytest.approx(2.1264, abs=1e-4)
    assert test.one_sided == pytest.approx(0.0388, abs=1e-4)


@pytest.mark.parametrize(
    ("first", "sentence"),
    [
        (Sample(1.0, 0.1, 1), "needs at least 2"),
        (Sample(1.0, -0.1, 4), "is negative"),
        (Sample(1.0, 0.0, 4), "Neither sample varies"),
    ],
)
def test_refusals(first, sentence):
    with pytest.raises(InputError, match=sentence):
        t_test(first, Sample(0.9, 0.0, 4), higher_is_better=True)
    with pytest.raises(InputError, match="1 run was given"):
        sample([1.0])
