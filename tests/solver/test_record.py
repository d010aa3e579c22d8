"""The record of a study on disk: resumption, refusals, locks, failing disks, tables."""

import csv
import sqlite3
import subprocess
import sys
from contextlib import closing

import numpy as np
import pytest

from casadi_hybrid import InputError
from casadi_hybrid.utils.record.collect import Keeping, collect
from casadi_hybrid.utils.record.record import Record, encoded, header, opened

ODD = [0.1, 1 / 3, -0.0, 5e-324, 1.7976931348623157e308, np.inf, np.nan]


def opened_as(folder, study="test", **options):
    return opened(folder, header(study, {"budget": 3}), **options)


def assert_refused(folder, message, study="test"):
    with pytest.raises(InputError, match=message), opened_as(folder, study):
        pass


def run(folder, items, table="csv", work=ODD.__getitem__):
    """A study whose units are numbers with two rows each."""

    def rows(seed, cost):
        return [{"seed": seed, "rule": rule, "cost": cost} for rule in ("a", "b")]

    keeping = Keeping[int, float](
        folder, "test", {}, table=table, rows=rows, value=lambda rows: rows[0]["cost"]
    )
    return collect(work, items, lambda values, _: values, keeping, workers=1)


def test_numbers_return_bit_for_bit(tmp_path):
    with opened_as(tmp_path) as record:
        record.append((1.0, "a"), [{"cost": np.array(ODD), "count": np.int64(3)}])
    with opened_as(tmp_path) as record:
        (row,) = record.units()[encoded((1.0, "a"))]
    assert np.array(row["cost"]).tobytes() == np.array(ODD).tobytes()
    assert row["count"] == 3


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_table_has_the_order_asked(tmp_path, form):
    if form == "parquet":
        parquet = pytest.importorskip("pyarrow.parquet")
    run(tmp_path, [5, 2], form)
    run(tmp_path, [0, 2, 5], form)
    if form == "csv":
        with (tmp_path / "runs.csv").open(newline="") as file:
            rows = [{**row, "seed": int(row["seed"])} for row in csv.DictReader(file)]
    else:
        rows = parquet.read_table(tmp_path / "runs.parquet").to_pylist()
    expected = [(seed, rule) for seed in (0, 2, 5) for rule in "ab"]
    assert [(row["seed"], row["rule"]) for row in rows] == expected
    assert [float(row["cost"]) for row in rows[::2]] == [0.1, -0.0, np.inf]


def test_unknown_tables_are_refused_before_work(tmp_path, monkeypatch):
    monkeypatch.setattr("casadi_hybrid.utils.record.collect.find_spec", lambda name: None)
    for table, message in (("xlsx", "table"), ("parquet", "pyarrow")):
        with pytest.raises(InputError, match=message):
            run(tmp_path / "none", [0], table)
    assert not (tmp_path / "none").exists()


def test_another_study_needs_fresh(tmp_path):
    with opened_as(tmp_path) as record:
        record.append(1, [{}])
    assert_refused(tmp_path, r"'test'.*'another'.*--fresh", "another")
    with opened_as(tmp_path, "another", fresh=True) as record:
        assert record.units() == {}


def test_foreign_files_are_left_alone(tmp_path):
    for name, message in (("study.json", "earlier version"), ("study.sqlite", "not the record")):
        path = tmp_path / name / name
        path.parent.mkdir()
        path.write_text("n,m\n" * 100)
        assert_refused(path.parent, message)
        assert path.read_text() == "n,m\n" * 100
        with opened_as(path.parent, fresh=True) as record:
            assert not record.units()


def test_lock_is_free_after_closing_or_killing(tmp_path):
    with opened_as(tmp_path):
        assert_refused(tmp_path, "in use")
    code = (
        "import sqlite3, sys\n"
        f"lock = sqlite3.connect({str(tmp_path / '.lock')!r})\n"
        "lock.execute('BEGIN EXCLUSIVE')\n"
        "print('locked', flush=True)\nsys.stdin.read()"
    )
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen([sys.executable, "-c", code], **pipes) as other:
        other.stdout.readline()
        assert_refused(tmp_path, "in use")
        other.kill()
    with opened_as(tmp_path):
        pass


def test_units_of_a_full_disk_are_written_later(tmp_path, capsys):
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
    assert capsys.readouterr().err.count("could not be written") == 1
    with opened_as(tmp_path) as record:
        assert set(record.units()) == {"0", "1", "2"}
