"""The paper's studies, each a function from options to a report with the paper's numbers next to ours.

To add one: write `studies/NAME.py` with a function `(Options) -> Report`, and enter it here with the fields of
`Options` it reads; `ckgconv study NAME` then runs it, prints its table and writes its page.
"""

from ckgconv.checks import InputError
from ckgconv.registry import nearest
from ckgconv.studies import ablations
from ckgconv.studies.edge_detection import edge_detection
from ckgconv.studies.ensembles import ensembles
from ckgconv.studies.expressiveness import expressiveness
from ckgconv.studies.kernels import kernels
from ckgconv.studies.main_table import main_table
from ckgconv.studies.nodes import PROBLEMS, nodes
from ckgconv.studies.oversmoothing import oversmoothing
from ckgconv.studies.report import Options, Report, Study, conduct, write_page
from ckgconv.studies.significance import significance
from ckgconv.studies.theory import theory

STUDIES: dict[str, Study] = {
    "oversmoothing": Study(
        "six layers of CKGCN keep a signal that six layers of GCN lose", oversmoothing, ("seeds", "epochs")
    ),
    "edge-detection": Study("only kernels that may be negative find a border", edge_detection, ("seeds", "epochs")),
    "significance": Study("t-tests of the paper's tables, or of runs", significance, ("runs", "against")),
    "theory": Study("spectral filters, set networks and the degree, measured", theory, ("seeds",)),
    "expressiveness": Study(
        "CKGCN separates the pairs of graphs that GD-WL does, and no others",
        expressiveness,
        ("seeds", "epochs", "data_dir"),
    ),
    "support": Study("how far a kernel must reach", ablations.support, ablations.READS),
    "kernel-depth": Study("whether a linear kernel is enough", ablations.kernel_depth, (*ablations.READS, "data")),
    "pe": Study("which pseudo-coordinates", ablations.pe, ablations.READS),
    "flexibility": Study("whether kernels need negative signs", ablations.flexibility, (*ablations.READS, "data")),
    "normalisation": Study("what LayerNorm costs", ablations.normalisation, ablations.READS),
    "kernels": Study("what learned kernels look like", kernels, ("runs", "data_dir")),
    "nodes": Study(
        "nodes of single graphs: ours next to GCN, GATv2, GraphSAGE and an MLP",
        nodes,
        ("seeds", "epochs", "data", "device", "data_dir"),
        data=tuple(PROBLEMS),
    ),
    "degree": Study("how much the degree scalers matter", ablations.degree, ablations.READS),
    "baselines": Study("the paper's tables of benchmarks, with runs of ours next to them", main_table, ("runs",)),
    "ensembles": Study(
        "four of GRIT, four of CKGCN, and two of each", ensembles, ("ckgcn", "grit", "device", "data_dir")
    ),
}


def study(name: str) -> Study:
    """The study of that name; refused with the nearest name where there is none."""
    if name in STUDIES:
        return STUDIES[name]
    raise InputError(f"There is no study {name!r}: {nearest(name, list(STUDIES))}")


__all__ = ["STUDIES", "Options", "Report", "Study", "conduct", "study", "write_page"]
