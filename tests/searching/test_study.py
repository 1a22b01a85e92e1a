import json
from dataclasses import replace

import pytest

from ckgconv import InputError
from ckgconv.searching.study import FILE, open_search, warmup


def test_a_search_is_opened_as_it_was_written(search):
    search.adopt()
    search.adopt()
    assert open_search(search.path) == search
    assert not search.higher_is_better
    assert warmup(search.recipe) == 0


def test_another_search_in_the_folder_is_refused(search, tmp_path):
    search.adopt()
    with pytest.raises(InputError, match="another recipe, space, seed or precision"):
        replace(search, seed=1).adopt()
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "file").write_text("kept")
    with pytest.raises(InputError, match="holds no search"):
        replace(search, path=tmp_path / "other").adopt()


@pytest.mark.parametrize("change", [{"seed": "x"}, {"recipe": {}}, {"space": {"model.width": 3}}])
def test_damaged_descriptions_are_refused(search, change):
    search.adopt()
    file = search.path / FILE
    file.write_text(json.dumps(json.loads(file.read_text()) | change))
    with pytest.raises(InputError, match="does not describe a search"):
        open_search(search.path)
    with pytest.raises(InputError, match="give the folder of a search"):
        open_search(search.path / "nothing")
