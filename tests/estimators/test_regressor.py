import numpy as np
import pytest
from molecules_for_tests import LENGTHS, SMILES, TINY
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from ckgconv import CKGCNRegressor, InputError, predict_smiles
from ckgconv.estimators.fitting import InvalidMoleculeWarning


def test_predictions_are_those_of_its_run(regressor):
    found = regressor.predict(SMILES[:3])
    assert found.tolist() == [value for (value,) in predict_smiles(regressor.run_, SMILES[:3]).values]
    assert regressor.predict("CCO").shape == (1,)


def test_it_learns():
    fitted = CKGCNRegressor(
        epochs=25, width=8, blocks=1, batch_size=8, learning_rate=1e-2, random_state=0, device="cpu"
    )
    assert fitted.fit(SMILES, LENGTHS).score(SMILES, LENGTHS) > 0.5


def test_the_same_seed_gives_the_same_network(regressor):
    again = CKGCNRegressor(**TINY).fit(SMILES, LENGTHS)
    assert np.array_equal(again.predict(SMILES), regressor.predict(SMILES))


def test_invalid_molecules_are_nan_with_a_reason(regressor):
    with pytest.warns(InvalidMoleculeWarning, match="1 of 2 rows of X cannot be predicted"):
        found = regressor.predict(["C", "C1CC"])
    assert np.isfinite(found).tolist() == [True, False]
    assert regressor.reasons(["C", "C1CC"]) == ["", "'C1CC' is not a valid SMILES."]
    with pytest.warns(InvalidMoleculeWarning):
        assert regressor.score([*SMILES, "C("], [*LENGTHS, 0.0]) == regressor.score(SMILES, LENGTHS)


def test_several_targets_of_which_some_are_unknown():
    y = np.stack([LENGTHS, -LENGTHS], axis=1)
    y[::3, 1] = np.nan
    fitted = CKGCNRegressor(**TINY).fit(SMILES, y)
    assert fitted.predict(SMILES).shape == y.shape
    assert fitted.run_.recipe.data.targets == ("y0", "y1")
    assert np.isfinite(fitted.score(SMILES, y))
    with pytest.raises(InputError, match="Every value of column 1 of y is NaN"):
        CKGCNRegressor(**TINY).fit(SMILES, np.stack([LENGTHS, LENGTHS * np.nan], axis=1))


def test_score_weighs_rows(regressor):
    half = np.arange(len(SMILES)) % 2
    rows = half.astype(bool)
    only = regressor.score(np.array(SMILES)[rows], LENGTHS[rows])
    assert regressor.score(SMILES, LENGTHS, sample_weight=half) == pytest.approx(only)


def test_searches_and_pipelines():
    pipeline = make_pipeline(
        FunctionTransformer(lambda smiles: [each.strip() for each in smiles]), CKGCNRegressor(**TINY)
    )
    assert len(cross_val_score(pipeline, [f" {each}" for each in SMILES], LENGTHS, cv=2)) == 2
    search = GridSearchCV(CKGCNRegressor(**TINY), {"width": [4, 6]}, cv=2, scoring="neg_mean_absolute_error")
    assert search.fit(SMILES, LENGTHS).best_params_["width"] in (4, 6)
    assert search.predict(SMILES[:2]).shape == (2,)


def test_before_fit_it_says_so():
    with pytest.raises(NotFittedError):
        CKGCNRegressor().predict("C")


def test_rows_of_weight_zero_are_not_learned():
    """Every second target is wrong by 100, and counts or does not."""
    wrong = LENGTHS + 100.0 * (np.arange(len(LENGTHS)) % 2)
    weight = 1.0 - np.arange(len(LENGTHS)) % 2
    settings = {**TINY, "epochs": 20, "learning_rate": 0.05}
    counted, left_out = (
        CKGCNRegressor(**settings).fit(SMILES, wrong, each).predict(SMILES).mean() for each in (None, weight)
    )
    assert left_out < counted - 10


@pytest.mark.parametrize("weights", [[1.0], [-1.0] * 20, [0.0] * 20, ["a"] * 20, [np.nan] * 20])
def test_wrong_weights_are_refused(weights):
    with pytest.raises(InputError, match="sample_weight has"):
        CKGCNRegressor(**TINY).fit(SMILES, LENGTHS, weights)
