"""The doors, by name. A new one is a file next to this one and a line here."""

from hostile.door import Door
from hostile.doors import kept_files, packed_file, pickles, probe, pyg_graphs, recipes, smiles, table_formats, tables

# The probe is no door of the library: it tests the runner.
DOORS: dict[str, Door] = {
    door.name: door
    for door in (
        packed_file.DOOR,
        tables.DOOR,
        table_formats.DOOR,
        smiles.DOOR,
        pyg_graphs.DOOR,
        pickles.DOOR,
        recipes.DOOR,
        kept_files.DOOR,
        probe.DOOR,
    )
}
