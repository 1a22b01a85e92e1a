"""The files of the page are those that are named, and the editor is the published one."""

import re

from ckgconv.files import digest
from ckgconv.serve.static import FILES, FOLDER, static_files


def test_every_file_is_served_or_explains_one():
    on_disk = {str(path.relative_to(FOLDER)) for path in FOLDER.rglob("*") if path.is_file()}
    assert on_disk == {name for name, _ in FILES.values()} | {"openchemlib/README.md"}


def test_the_editor_is_the_published_one():
    note = (FOLDER / "openchemlib" / "README.md").read_text()
    noted = re.search(r"SHA-256 of `openchemlib.js`: (\w{64})", note)
    assert digest((FOLDER / "openchemlib" / "openchemlib.js").read_bytes()) == noted[1]
    assert "Redistribution and use in source and binary forms" in (FOLDER / "openchemlib" / "LICENSE").read_text()


def test_the_page_is_small():
    assert sum(len(file.content) for file in static_files().values()) < 2 * 2**20


def test_scripts_and_pages_import_only_what_is_served():
    for name in ("index.html", "docs.html", "page.js", "editor.js", "docs.js"):
        text = (FOLDER / name).read_text()
        named = re.findall(r"""(?:src|href|from|ask\(|post\(|fetch\()=?\s*["'](/[^"'#]*)["']""", text)
        assert named
        assert set(named) <= {
            *FILES,
            "/api/model",
            "/api/predict",
            "/api/predict-file",
            "/api/explain",
            "/api/openapi.json",
        }
