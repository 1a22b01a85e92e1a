"""Further metrics of a recipe, computed for the network of the best epoch.

Only the main metric chooses that epoch. A metric that the targets of a split leave undefined is NaN.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import torch

from ckgconv.engine.learner import Learner
from ckgconv.engine.predict_split import predict_split
from ckgconv.tasks.metrics import Score
from ckgconv.tasks.task import Metric

if TYPE_CHECKING:
    from ckgconv.engine.run import Run


def evaluate_metrics(learner: Learner, split: str, metrics: Mapping[str, Metric]) -> dict[str, float]:
    """Metrics of the learner's network on a split, by name."""
    found = predict_split(learner, split)
    values = {}
    for name, metric in metrics.items():
        score = Score(metric, found.prediction.shape[1], torch.device("cpu"))
        score.collector.distributed_available_fn = lambda: False  # each process has all rows
        score.update(found.prediction, found.target)
        values[name] = score.compute()
    return values


def add_metrics(run: "Run", splits: Sequence[str] = ("val", "test")) -> None:
    """Record the further metrics of a run that has its best weights, where they are not recorded."""
    others, recorded = run.learner.task.others, dict(run.record.metrics or {})
    if not others:
        return
    for split in splits:
        if split not in recorded and len(run.learner.data.target_rows(split)):
            recorded[split] = evaluate_metrics(run.learner, split, others)
    run.record.metrics = recorded
