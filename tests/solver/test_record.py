"""The record of a study on disk: resumption, refusals, locks, failing disks, tables."""

import csv
import re
import sqlite3
import subprocess
import sys
from contextlib import closing
from typing import Any

import numpy as np
import pytest

from casadi_hybrid import InputError
from casadi_hybrid.utils.output.files import writable
from casadi_hybrid.utils.record.collect import Keeping, collect
from casadi_hybrid.utils.record.record import Record, encoded, header, opened

ODD = [0.1, 1 / 3, -0.0, 5e-324, 1.7976931348623157e308, np.inf, np.nan]


def opened_as(folder, study="test", **options):
    return opened(folder, header(study, {"budget": 3}), **options)


def run(folder, items, table="csv", work=None) -> Any:
    """A study whose units are numbers with two rows each."""
    keeping = Keeping[int, float](
        folder,
        "test",
        {},
        rows=lambda seed, cost: [{"seed": seed, "rule": r, "cost": cost} for r in ("a", "b")],
        value=lambda rows: rows[0]["cost"],
        table=table,
    )
    return collect(work or (lambda seed: ODD[seed]), items, lambda v, _: v, keeping, workers=1)


def test_numbers_come_back_bit_for_bit(tmp_path):
    with opened_as(tmp_path) as record:
        record.append((1.0, "a"), [{"cost": np.array(ODD), "count": np.int64(3)}])
    with opened_as(tmp_path) as record:
        (row,) = record.units()[encoded((1.0, "a"))]
    assert np.array(row["cost"]).tobytes() == np.array(ODD).tobytes()
    assert row["count"] == 3


def test_a_second_run_computes_what_is_missing(tmp_path):
    ran = []

    def work(seed):
        ran.append(seed)
        return ODD[seed]

    first = run(tmp_path, [5, 2], work=work)
    values = run(tmp_path, range(7), work=work)
    assert ran == [5, 2, 0, 1, 3, 4, 6]
    assert list(first) == [5, 2]
    assert np.array([*values.values()]).tobytes() == np.array(ODD).tobytes()


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_the_table_has_the_plans_order(tmp_path, form):
    if form == "parquet":
        parquet = pytest.importorskip("pyarrow.parquet")
    run(tmp_path, [5, 2], form)
    run(tmp_path, [0, 2, 5], form)
    if form == "csv":
        with (tmp_path / "runs.csv").open(newline="") as file:
            rows = [{**row, "seed": int(row["seed"])} for row in csv.DictReader(file)]
    else:
        rows = parquet.read_table(tmp_path / "runs.parquet").to_pylist()
    assert [(row["seed"], row["rule"]) for row in rows] == [
        (seed, rule) for seed in (0, 2, 5) for rule in "ab"
    ]
    assert [float(row["cost"]) for row in rows[::2]] == [0.1, -0.0, np.inf]


def test_unknown_tables_are_refused_before_work(tmp_path, monkeypatch):
    with pytest.raises(InputError, match="table"):
        run(tmp_path / "none", [0], "xlsx")
    monkeypatch.setattr("casadi_hybrid.utils.record.collect.find_spec", lambda name: None)
    with pytest.raises(InputError, match="pyarrow, which is not installed"):
        run(tmp_path / "none", [0], "parquet")
    assert not (tmp_path / "none").exists()


def test_another_study_is_refused_and_fresh_replaces_it(tmp_path):
    with opened_as(tmp_path) as record:
        record.append(1, [{}])
    for _ in range(2):
        with (
            pytest.raises(InputError, match=r"study = 'test', this one has 'another'.*--fresh"),
            opened_as(tmp_path, "another"),
        ):
            pass
    with opened_as(tmp_path, "another", fresh=True) as record:
        assert record.units() == {}


def test_a_study_of_an_earlier_version_is_refused_and_left_alone(tmp_path):
    for name in ("study.json", "runs.csv"):
        (tmp_path / name).write_text("hours of work")
    with pytest.raises(InputError, match="earlier version"):
        run(tmp_path, [1])
    assert (tmp_path / "runs.csv").read_text() == "hours of work"
    with opened_as(tmp_path, fresh=True) as record:
        assert not record.units()


def test_a_file_of_something_else_is_refused_and_left_alone(tmp_path):
    path = tmp_path / "study.sqlite"
    path.write_text("n,m\n" * 100)
    with pytest.raises(InputError, match="not the record of a study"), opened_as(tmp_path):
        pass
    assert path.read_text() == "n,m\n" * 100


def test_a_second_run_is_locked_out_until_the_first_ends(tmp_path):
    with opened_as(tmp_path), pytest.raises(InputError, match="in use"), opened_as(tmp_path):
        pass
    with opened_as(tmp_path):
        pass


def test_the_lock_of_a_killed_process_is_free(tmp_path):
    code = (
        "import sqlite3, sys\n"
        f"lock = sqlite3.connect({str(tmp_path / '.lock')!r})\n"
        "lock.execute('BEGIN EXCLUSIVE')\n"
        "print('locked', flush=True)\nsys.stdin.read()"
    )
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen([sys.executable, "-c", code], **pipes) as other:
        other.stdout.readline()
        with pytest.raises(InputError, match="in use"), opened_as(tmp_path):
            pass
        other.kill()
    with opened_as(tmp_path):
        pass


def test_a_folder_that_cannot_be_written_to_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match=r"file/below cannot be written to: \w"):
        writable(tmp_path / "file" / "below")
    assert list(writable(tmp_path / "new").iterdir()) == []


def test_units_the_disk_refused_are_written_with_the_next(tmp_path, capsys):
    with opened_as(tmp_path):
        pass
    with closing(sqlite3.connect(tmp_path / "study.sqlite")) as file:
        record = Record(file)
        pages = file.execute("PRAGMA page_count").fetchone()[0]
        file.execute(f"PRAGMA max_page_count = {pages}")
        record.append(0, [{"cost": "9" * 10_000}])
        record.append(1, [{"cost": "9" * 10_000}])
        assert "full" in record.unwritten
        file.execute("PRAGMA max_page_count = 1000")
        record.append(2, [{"cost": 2}])
        assert record.unwritten == ""
    assert len(re.findall("could not be written", capsys.readouterr().err)) == 1
    with opened_as(tmp_path) as record:
        assert set(record.units()) == {"0", "1", "2"}
