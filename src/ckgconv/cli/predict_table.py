"""A table of molecules and its predictions, streamed: rows are read, predicted and written a chunk at a time.

The output keeps every row, in order, and all columns of the input but those that predictions replace. It is written to
a temporary file and renamed at the end, so that a file under its name is complete.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from ckgconv.cli import terminal
from ckgconv.cli.output_table import table_writer
from ckgconv.data.spreadsheet import as_text
from ckgconv.data.table_stream import Chunk, TableStream, stream_table
from ckgconv.data.text_file import opened
from ckgconv.engine.side_by_side import cores
from ckgconv.files import write_output
from ckgconv.uncertainty.asked_columns import Asked, asked_columns, handed
from ckgconv.uncertainty.parallel import CHUNK, Opening, Rows, predict_chunks
from ckgconv.uncertainty.predicted import Cells
from ckgconv.uncertainty.predictor import Predictor

# Opening networks in further processes takes some seconds, in which one predicts about this many molecules.
ROWS_FOR_WORKERS = 5000


def predict_table(
    opening: Opening, path: Path, out: Path, smiles: str | None, workers: int | None, quiet: bool
) -> dict[str, int]:
    """Predict a table, and return how many rows there were, were predicted and were invalid."""
    with opened(path, "a CSV"):  # refuses what is no file before a network is opened
        pass
    predictor = opening.open()
    if opening.embed:
        predictor.embedded([])  # refuses several runs before anything is read
    recipe = predictor.run.recipe.data
    table = stream_table(path, recipe.most_atoms)
    console = terminal.console(stderr=True, soft_wrap=True)
    asked = asked_columns(table, smiles or recipe.smiles, recipe.features)
    for sentence in () if quiet else asked.said:
        console.print(sentence)
    columns = TextColumn("predicting"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
    counts = {"rows": table.total, "predicted": 0, "invalid": 0}
    chosen = default_workers(predictor, table) if workers is None else workers
    with Progress(*columns, console=console, disable=quiet) as progress:
        task = progress.add_task("", total=table.total)

        def write(part: Path) -> None:
            counts.update(predicted=0, invalid=0)
            with table_writer(part, out) as writer:
                for chunk, found in _predicted(opening, predictor, table, asked, chosen):
                    first = counts["predicted"] + counts["invalid"] == 0
                    _write_chunk(writer, table, chunk, found, first)
                    invalid = sum(1 for reason in found["reason"] if reason)
                    counts["invalid"] += invalid
                    counts["predicted"] += len(chunk.rows) - invalid
                    progress.update(task, advance=len(chunk.rows))

        write_output(out, write)
    for note in () if quiet else predictor.notes:
        console.print(note)
    return counts


def default_workers(predictor: Predictor, table: TableStream) -> int:
    """One per core for a long table on a CPU, else this process alone."""
    on_cpu = predictor.run.learner.fabric.device.type == "cpu"
    return cores() if on_cpu and table.total >= ROWS_FOR_WORKERS else 1


def _predicted(
    opening: Opening, predictor: Predictor, table: TableStream, asked: Asked, workers: int
) -> Iterator[tuple[Chunk, Cells]]:
    """Chunks of rows with their predictions; only those that are under way are held."""
    under_way: list[Chunk] = []

    def rows() -> Iterator[Rows]:
        for chunk in table.chunks(CHUNK):
            under_way.append(chunk)
            yield handed(chunk, asked)

    for found in predict_chunks(opening, predictor, rows(), workers):
        yield under_way.pop(0), found


def _write_chunk(writer: Any, table: TableStream, chunk: Chunk, found: Cells, first: bool) -> None:
    kept = [place for place, name in enumerate(table.columns) if name not in found]
    if first:
        writer.writerow(map(as_text, [*(table.columns[place] for place in kept), *found]))
    predicted = zip(*([_cell(value) for value in column] for column in found.values()), strict=True)
    for row, cells in zip(chunk.rows, predicted, strict=True):
        writer.writerow([*(as_text(row[place]) for place in kept), *map(as_text, cells)])


def _cell(value: Any) -> str:
    """Empty where undefined; all digits of a number."""
    if value is None:
        return ""
    return value if isinstance(value, str) else repr(value)
