"""The simplest competitor of a regression: always the mean of the training targets."""

import torch

from ckgconv.engine.run import Run
from ckgconv.tasks.metrics import Score
from ckgconv.tasks.scaling import fitted


def mean_predictor(run: Run) -> float | None:
    """Its test MAE, in the units of the data; None where the metric is another or there is no test split."""
    data = run.learner.data
    if run.record["metric"] != "mae" or data.y is None or not len(data.test):
        return None
    target = data.y[data.test].reshape(len(data.test), -1).double()
    mean = fitted(data.y[data.train]).mean.double().to(target.device)
    score = Score("mae", target.shape[1], torch.device(target.device))
    score.update(mean.expand_as(target), target)
    return score.compute()
