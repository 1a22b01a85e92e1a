"""scikit-learn's own checks of estimators.

They hand over rows of numbers, so an adapter writes a SMILES for each row. What they check of the numbers themselves
is then a matter of the adapter, and left out.
"""

import pytest
from molecules_for_tests import TINY
from sklearn.utils.estimator_checks import estimator_checks_generator
from sklearn.utils.validation import check_is_fitted, validate_data

from ckgconv import CKGCNClassifier, CKGCNRegressor

# Checks of X as numbers, of the library of arrays it comes from, or of what its other names also check.
OF_NUMBERS = {
    *("check_array_api_input", "check_complex_data", "check_dtype_object", "check_estimators_dtypes"),
    *("check_estimators_empty_data_messages", "check_estimators_nan_inf", "check_estimator_sparse_array"),
    *("check_estimator_sparse_matrix", "check_estimator_sparse_tag", "check_f_contiguous_array_estimator"),
    *(
        "check_fit1d",
        "check_fit2d_1feature",
        "check_fit2d_predict1d",
        "check_n_features_in",
        "check_pipeline_consistency",
    ),
    *("check_readonly_memmap_input", "check_regressors_int", "check_regressor_data_not_an_array"),
    *("check_classifier_data_not_an_array", "check_n_features_in_after_fitting", "check_positive_only_tag_during_fit"),
}
# One epoch of a network of width 4 has learned nothing yet.
UNTRAINED = {"check_regressors_train", "check_classifiers_train"}


class OfNumbers:
    """Rows of numbers → a molecule each."""

    def fit(self, X, y):
        rows, count = validate_data(self, X), self.n_features_in_
        super().fit([smiles(row) for row in rows], y)
        self.n_features_in_ = count
        return self

    def _outcome(self, X):
        check_is_fitted(self)
        return super()._outcome([smiles(row) for row in validate_data(self, X, reset=False)])

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array, tags.input_tags.one_d_array, tags.input_tags.string = True, False, False
        return tags


class RegressorOfNumbers(OfNumbers, CKGCNRegressor):
    pass


class ClassifierOfNumbers(OfNumbers, CKGCNClassifier):
    pass


def smiles(row) -> str:
    first, last = row[0], row[-1]
    return "C" * (1 + int(abs(first * 3)) % 6) + ("O" if last > 0 else "N") + "C" * (int(abs(last * 4)) % 5)


def checks():
    for kind in (RegressorOfNumbers, ClassifierOfNumbers):
        for estimator, check in estimator_checks_generator(kind(**TINY | {"epochs": 1, "random_state": None})):
            name = check.func.__name__
            if name not in OF_NUMBERS | UNTRAINED:
                yield pytest.param(estimator, check, id=f"{kind.__name__}-{name}")


@pytest.mark.filterwarnings("ignore::UserWarning")  # of classes with one row, and of numbers given as columns
@pytest.mark.parametrize(("estimator", "check"), list(checks()))
def test_checks_of_scikit_learn(estimator, check):
    check(estimator)


def test_the_package_has_them_when_they_are_asked_for():
    import ckgconv

    assert {"CKGCNClassifier", "CKGCNRegressor"} <= set(ckgconv.__all__)
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        _ = ckgconv.Nothing
