"""Members of one ensemble: the same recipe, data and split, other seeds; trained side by side, kept in one folder."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from ckgconv.checks import check_whole, require
from ckgconv.engine.ensemble import open_runs
from ckgconv.engine.members import member_folder, write_members
from ckgconv.engine.run import Run
from ckgconv.engine.run_folder import check_folder, has_run
from ckgconv.engine.setup import make_fabric
from ckgconv.engine.side_by_side import Job, Told, cores, train_side_by_side
from ckgconv.recipe import Recipe
from ckgconv.uncertainty.fit import fit
from ckgconv.uncertainty.kept import write_uncertainty

MOST_MEMBERS = 1000


@dataclass(frozen=True)
class EnsembleJob:
    """An ensemble to train."""

    recipe: Recipe
    folder: Path
    size: int = 5  # members
    seed: int = 0  # of the first member; the others have the next ones
    device: str = "auto"
    precision: str = "32"
    data: Path | None = None  # folder of packed files
    resume: bool = False
    at_once: int | None = None  # members that are trained at the same time; None: one per core, one on a GPU

    @property
    def jobs(self) -> list[Job]:
        """One per member."""
        shared = Job(self.recipe, self.seed, self.folder, self.device, self.precision, self.data, self.resume)
        return [
            replace(shared, seed=self.seed + place, folder=member_folder(self.folder, place))
            for place in range(self.size)
        ]

    def check(self) -> None:
        """Refuse what cannot be trained, before anything is."""
        check_whole("The size of the ensemble", self.size, 2, MOST_MEMBERS)
        if self.at_once is not None:
            check_whole("The number of members at once", self.at_once, 1, MOST_MEMBERS)
        require(not has_run(self.folder), f"{self.folder} holds a run: choose another folder with --out.")
        begun = [has_run(job.folder) for job in self.jobs]
        require(any(begun) or not self.resume, f"{self.folder} holds no run to resume: start it without --resume.")
        for job, exists in zip(self.jobs, begun, strict=True):
            check_folder(job.folder, job.recipe, job.seed, job.precision, self.resume and exists)

    @property
    def processes(self) -> int:
        """Members at the same time."""
        if self.at_once is not None:
            return min(self.at_once, self.size)
        on_gpu = make_fabric(self.device, self.precision).device.type != "cpu"
        return 1 if on_gpu else min(cores(), self.size)


def train_ensemble(job: EnsembleJob, tell: Callable[[Told], None] = lambda told: None) -> list[Run]:
    """Train all members, fit what their predictions are worth, and return them with their data."""
    job.check()
    train_side_by_side(job.jobs, job.processes, tell)
    return finish_ensemble(job)


def finish_ensemble(job: EnsembleJob) -> list[Run]:
    """What follows once all members have been trained."""
    write_members(job.folder, job.size)
    runs = list(open_runs([job.folder], job.device, data=job.data).runs)
    write_uncertainty(job.folder, fit(runs))
    return runs
