"""The paper's studies, each a function from options to a report with the paper's number beside ours.

To add one: write `studies/NAME.py` with a function `(Options) -> Report`, and enter it here with the fields of
`Options` it reads; `ckgconv study NAME` then runs it, prints its table and writes its page.
"""

from ckgconv.checks import InputError
from ckgconv.recipes.values import nearest
from ckgconv.studies.expressiveness import expressiveness
from ckgconv.studies.oversmoothing import oversmoothing
from ckgconv.studies.report import Options, Report, Study, conduct, write_page

STUDIES: dict[str, Study] = {
    "expressiveness": Study(
        "CKGCN separates the pairs of graphs that GD-WL does, and no others", expressiveness, ("seeds", "epochs")
    ),
    "oversmoothing": Study(
        "six layers of CKGCN keep a signal that six layers of GCN lose", oversmoothing, ("seeds", "epochs")
    ),
}


def study(name: str) -> Study:
    """The study of that name; a sentence with the nearest one where there is none."""
    if name in STUDIES:
        return STUDIES[name]
    raise InputError(f"There is no study {name!r}: {nearest(name, list(STUDIES))}")


__all__ = ["STUDIES", "Options", "Report", "Study", "conduct", "study", "write_page"]
