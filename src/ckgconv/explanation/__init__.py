"""Why a network predicts what it does: contributions of atoms and bonds, substructures, kernels around an atom."""

from ckgconv.explanation.drawing import draw
from ckgconv.explanation.explainer import Explainer, Explanation, explain
from ckgconv.explanation.methods import METHODS, Method

__all__ = ["METHODS", "Explainer", "Explanation", "Method", "draw", "explain"]
