"""Names that people use for losses and metrics, beside those of the registries.

Which entry is meant depends on the kind of targets: the accuracy of labels is another entry than that of classes.

A dash is an underscore, and capitals are small letters.
"""

from collections.abc import Mapping, Sequence

from ckgconv.checks import InputError
from ckgconv.registry import nearest
from ckgconv.tasks.losses import LOSSES
from ckgconv.tasks.metrics import METRICS
from ckgconv.tasks.task import Targets

Meanings = Mapping[str, Mapping[Targets, str]]
AUROC: Mapping[Targets, str] = {"labels": "auroc", "classes": "class_auroc"}
PRECISION_RECALL: Mapping[Targets, str] = {"labels": "average_precision"}
MCC: Mapping[Targets, str] = {"labels": "label_mcc", "classes": "mcc"}
METRIC_NAMES: Meanings = {
    "mae": {"values": "mae"},
    "mse": {"values": "mse"},
    "rmse": {"values": "rmse"},
    "r2": {"values": "r2"},
    "trimmed_mae": {"values": "trimmed_mae"},
    "roc_auc": AUROC,
    "auroc": AUROC,
    "roc": AUROC,
    "pr_auc": PRECISION_RECALL,
    "prc": PRECISION_RECALL,
    "average_precision": PRECISION_RECALL,
    "accuracy": {"labels": "label_accuracy", "classes": "accuracy"},
    "balanced_accuracy": {"labels": "label_balanced_accuracy", "classes": "sbm_accuracy"},
    "f1": {"labels": "label_f1", "classes": "f1"},
    "mcc": MCC,
    "binary_mcc": MCC,
    "multiclass_mcc": MCC,
    "precision": {"labels": "label_precision"},
    "recall": {"labels": "label_recall", "classes": "sbm_accuracy"},
    "mixed_score": {"mixed": "mixed_score"},
}
FOCAL: Mapping[Targets, str] = {"labels": "focal", "classes": "focal_cross_entropy"}
LOSS_NAMES: Meanings = {
    "mae": {"values": "l1"},
    "l1": {"values": "l1"},
    "mse": {"values": "mse"},
    "huber": {"values": "huber"},
    "bce": {"labels": "binary"},
    "binary": {"labels": "binary"},
    "ce": {"classes": "cross_entropy"},
    "cross_entropy": {"classes": "cross_entropy"},
    "focal": FOCAL,
}


def metric_of(name: str, kinds: Sequence[Targets]) -> str:
    """The entry of METRICS that a name means for targets of these kinds, the first kind that has one."""
    return _meant("metric", name, kinds, METRIC_NAMES, {key: each.targets for key, each in METRICS.sound().items()})


def loss_of(name: str, kinds: Sequence[Targets]) -> str:
    """As `metric_of`, of LOSSES."""
    return _meant("loss", name, kinds, LOSS_NAMES, {key: each.targets for key, each in LOSSES.sound().items()})


def _meant(what: str, name: str, kinds: Sequence[Targets], names: Meanings, entries: Mapping[str, Targets]) -> str:
    plain = name.strip().lower().replace("-", "_")
    for kind in kinds:
        if kind in names.get(plain, {}):
            return names[plain][kind]
        if entries.get(plain) == kind:
            return plain
    known = [each for each, meanings in names.items() if any(kind in meanings for kind in kinds)]
    if plain in names or plain in entries:
        raise InputError(f"The {what} {name!r} is not one for {' and '.join(kinds)}: choose among {', '.join(known)}.")
    raise InputError(f"There is no {what} {name!r}: {nearest(plain, known)}")
