"""Options of `ckgconv train` that stand for values of the training recipe, for any recipe."""

from dataclasses import dataclass
from typing import Annotated

import typer

from ckgconv.recipe import Recipe
from ckgconv.recipes import with_value


@dataclass(frozen=True)
class TrainingOptions:
    """Each stands for `--set PATH=VALUE`, which has precedence."""

    epochs: Annotated[int | None, typer.Option("--epochs", help="training.epochs")] = None
    batch_size: Annotated[int | None, typer.Option("--batch-size", help="training.batch_size")] = None
    learning_rate: Annotated[
        float | None, typer.Option("--learning-rate", "--max-lr", help="training.learning_rate, after the warm-up")
    ] = None
    final_learning_rate: Annotated[
        float | None, typer.Option("--final-lr", help="training.min_learning_rate, that of the last epoch")
    ] = None
    warmup_epochs: Annotated[int | None, typer.Option("--warmup-epochs", help="training.warmup_epochs")] = None
    patience: Annotated[int | None, typer.Option("--patience", help="training.patience")] = None

    data_seed: Annotated[int | None, typer.Option("--data-seed", help="data.split_seed, of splits and folds")] = None

    @property
    def given(self) -> dict[str, int | float]:
        """The values given, by their paths."""
        paths = {
            "training.epochs": self.epochs,
            "training.batch_size": self.batch_size,
            "training.learning_rate": self.learning_rate,
            "training.min_learning_rate": self.final_learning_rate,
            "training.warmup_epochs": self.warmup_epochs,
            "training.patience": self.patience,
            "data.split_seed": self.data_seed,
        }
        return {path: value for path, value in paths.items() if value is not None}

    def applied(self, chosen: Recipe) -> Recipe:
        """The recipe with the values given."""
        for path, value in self.given.items():
            chosen = with_value(chosen, f"{path}={value}")
        return chosen
