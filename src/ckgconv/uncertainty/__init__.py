"""What a prediction is worth: deviation between members, intervals, calibrated probabilities, applicability.

write_uncertainty(folder, fit([run]))     after training, by `ckgconv train`
Predictor.open(folder)                    reads it
"""

from ckgconv.uncertainty.fit import fit
from ckgconv.uncertainty.kept import Uncertainty, read_uncertainty, write_uncertainty
from ckgconv.uncertainty.predicted import PredictedMolecule, PredictedMolecules
from ckgconv.uncertainty.predictor import Predictor

__all__ = [
    "PredictedMolecule",
    "PredictedMolecules",
    "Predictor",
    "Uncertainty",
    "fit",
    "read_uncertainty",
    "write_uncertainty",
]
