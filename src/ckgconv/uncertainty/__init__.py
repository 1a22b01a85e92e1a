"""What a prediction is worth: deviation between members, intervals, calibrated probabilities, applicability."""

from ckgconv.uncertainty.predicted import PredictedMolecule, PredictedMolecules
from ckgconv.uncertainty.predictor import Predictor

__all__ = ["PredictedMolecule", "PredictedMolecules", "Predictor"]
