"""Ranking metrics by their definitions."""


def average_precision(prediction, target) -> float:
    """Σ over the positives of the precision at their rank, divided by their number."""
    order = prediction.argsort(descending=True)
    hits = target[order]
    precision = hits.cumsum(0) / (1 + hits.new_ones(len(hits)).cumsum(0) - 1)
    return float((precision * hits).sum() / hits.sum())


def roc_area(prediction, target) -> float:
    """Share of (positive, negative) pairs in the right order."""
    positive, negative = prediction[target == 1], prediction[target == 0]
    return float((positive[:, None] > negative).double().mean())
