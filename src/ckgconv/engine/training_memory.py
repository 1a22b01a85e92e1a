"""Whether the training steps of a run fit into memory, asked before the first one."""

from ckgconv.engine.learner import Learner
from ckgconv.engine.prepared import prepared_once
from ckgconv.engine.sampling import sampled
from ckgconv.graphs import GraphBatch


def check_training_memory(learner: Learner) -> None:
    """Refuse a run that has a step, whatever the order of its graphs, that does not fit."""
    if sampled(learner) or not learner.model.step_bytes(1):
        return  # samples are chosen to be small, and not every model has an estimate
    with learner.fabric.autocast():
        # What every draw computes is held until the backward pass.
        rows = least_rows(learner) * learner.recipe.draws
        learner.model.train().check_step(rows, learner.fabric.device)


def least_rows(learner: Learner) -> int:
    """Rows of pairs that some training step has at least: those of the largest graph, and of a batch on average."""
    data, fabric = learner.data, learner.fabric
    nodes = data.node_ptr.diff()[data.train.to(data.node_ptr.device)]
    if learner.model.encoding.stores_near_pairs:
        batch = prepared_once(learner, data.train[int(nodes.argmax())].view(1)).batch
        assert isinstance(batch, GraphBatch)
        return batch.pairs.coordinates.shape[0]
    pairs = nodes.double().square()
    graphs = min(max(learner.recipe.batch_size // fabric.world_size, 1), nodes.shape[0])
    return int(max(pairs.max(), pairs.mean() * graphs))
