"""Root mean square error √ mean (ŷ - y)² over the known targets of all outputs; large errors weigh most."""

from torchmetrics import MeanSquaredError

from ckgconv.tasks.task import Metric

RMSE = Metric(lambda outputs: MeanSquaredError(squared=False), targets="values", higher_is_better=False)
