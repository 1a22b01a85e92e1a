import pytest

from ckgconv import InputError, recipe
from ckgconv.cli import repeat_options
from ckgconv.cli.training_options import TrainingOptions


def test_options_stand_for_values_of_the_recipe():
    given = TrainingOptions(
        epochs=7, batch_size=3, learning_rate=0.5, final_learning_rate=1e-7, warmup_epochs=2, patience=4
    )
    training = given.applied(recipe("zinc")).training
    assert (training.epochs, training.batch_size, training.learning_rate) == (7, 3, 0.5)
    assert (training.min_learning_rate, training.warmup_epochs, training.patience) == (1e-7, 2, 4)
    assert TrainingOptions().applied(recipe("zinc")) == recipe("zinc")
    with pytest.raises(InputError, match=r"training.epochs is 0"):
        TrainingOptions(epochs=0).applied(recipe("zinc"))


def test_only_options_that_may_be_repeated_take_several_values():
    assert repeat_options(["train", "--seed", "0", "1", "-o", "x"]) == [
        "train",
        "--seed",
        "0",
        "--seed",
        "1",
        "-o",
        "x",
    ]
    assert repeat_options(["train", "--epochs", "0", "1"]) == ["train", "--epochs", "0", "1"]
    assert repeat_options(["info", "--seed", "0", "1"]) == ["info", "--seed", "0", "1"]
