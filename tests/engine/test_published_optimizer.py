"""The optimiser as the published runs use it: what is updated, its constants, and when its rate changes."""

from dataclasses import replace

from small_data import small_dataset

from ckgconv import recipe, train
from ckgconv.backends.cuda.adamw.naive import Rates
from ckgconv.engine.learning_rate import learning_rate
from ckgconv.engine.optimizers import optimizer_of
from ckgconv.nn.models import build_model


def test_all_parameters_are_updated_alike():
    """What the golden steps use; torch's optimiser and the flat one of a GPU have the same constants."""
    model, training = build_model(recipe("zinc").model), recipe("zinc").training
    (group,) = optimizer_of(model, training).param_groups
    assert {id(each) for each in group["params"]} == {id(each) for each in model.parameters()}
    assert sum(each.numel() for each in group["params"]) == 432_919  # norms and biases included, nothing frozen
    assert (group["lr"], group["weight_decay"], group["betas"], group["eps"]) == (1e-3, 1e-5, (0.9, 0.999), 1e-8)
    flat = Rates(training.clip_norm, training.weight_decay)
    assert (flat.beta1, flat.beta2, flat.epsilon, flat.clip_norm) == (*group["betas"], group["eps"], 1.0)


class KeepsRates:
    """The rate in the optimiser after every step of a run."""

    def __init__(self) -> None:
        self.rates: list[float] = []

    def on_step(self, run, graphs, loss):
        (group,) = run.learner.optimizer.param_groups
        self.rates.append(float(group["lr"]))


def test_the_rate_changes_between_epochs_alone():
    chosen, kept = recipe("zinc"), KeepsRates()
    training = replace(chosen.training, epochs=4, warmup_epochs=2, batch_size=4)
    chosen = replace(chosen, model=replace(chosen.model, width=8, blocks=1, steps=3), training=training)
    run = train(chosen, data=small_dataset(chosen), device="cpu", callbacks=[kept])
    steps = len(kept.rates) // 4
    expected = [learning_rate(epoch, training) for epoch in range(4) for _ in range(steps)]
    assert steps == 2  # of 4 and of 2 graphs
    assert kept.rates == expected
    assert [epoch.lr for epoch in run.record.epochs] == expected[::steps]
    assert expected[0] == 1e-7  # where the warm-up begins
