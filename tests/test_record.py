"""The record of a study on disk: what a kill, an editor, a full disk and a second run do to it."""

import contextlib
import csv
import re
import subprocess
import sys

import numpy as np
import pytest

from casadi_hybrid import InputError
from casadi_hybrid.basics.record.cells import packed, unpacked
from casadi_hybrid.basics.record.folder import Lock, writable
from casadi_hybrid.basics.record.record import Record, header
from casadi_hybrid.basics.record.software import software
from casadi_hybrid.basics.record.tables import Lines

COLUMNS = {"seed": int, "rule": str, "good": bool, "cost": float, "said": str}
ODD = [0.1, 1 / 3, -0.0, 5e-324, 1.7976931348623157e308, np.inf, np.nan]


@pytest.fixture(params=["csv", "parquet"])
def table(request):
    if request.param == "parquet":
        pytest.importorskip("pyarrow")
    return request.param


def opened(folder, table="csv", study="test", **more):
    about = header(study, {"budget": 3})
    return Record(folder, about, COLUMNS, key=1, rows=2, table=table, **more)


def unit(seed, cost=0.5):
    return [
        {"seed": seed, "rule": rule, "good": rule == "a", "cost": cost, "said": 'x, "y"'}
        for rule in ("a", "b")
    ]


def filled(folder, table="csv", seeds=range(4)):
    with opened(folder, table) as record:
        for seed in seeds:
            record.append((seed,), unit(seed))
    return folder / f"runs.{table}"


def test_rows_come_back_bit_for_bit_with_the_software(tmp_path, table):
    with opened(tmp_path, table) as record:
        for seed, cost in enumerate(ODD):
            record.append((seed,), unit(seed, cost))
    with opened(tmp_path, table) as record:
        back = [record.done[seed,][0]["cost"] for seed in range(len(ODD))]
        assert record.done[2,][1] == {**unit(2)[1], "cost": -0.0}
    assert np.array(back).tobytes() == np.array(ODD).tobytes()
    if table == "csv":
        with (tmp_path / "runs.csv").open(newline="") as file:
            assert {row["software"] for row in csv.DictReader(file)} == {software()}


def test_parquet_is_read_by_any_reader(tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    found = parquet.read_table(filled(tmp_path, "parquet"))
    assert found.column("seed").to_pylist() == [0, 0, 1, 1, 2, 2, 3, 3]
    assert found.schema.field("cost").type == "double"


def test_units_are_put_into_order_however_they_came(tmp_path, table):
    with opened(tmp_path, table) as record:
        for seed in (3, 0, 2):
            record.append((seed,), unit(seed))
        record.arrange((seed,) for seed in range(4))
    with opened(tmp_path, table) as record:
        assert list(record.done) == [(0,), (2,), (3,)]


@pytest.mark.parametrize("cut", range(1, 300, 13))
def test_a_unit_that_a_kill_cut_is_run_again_and_no_other(tmp_path, cut):
    path = filled(tmp_path)
    path.write_bytes(path.read_bytes()[:-cut])
    with opened(tmp_path) as record:
        assert set(record.done) == {(0,), (1,), (2,)}
        record.append((3,), unit(3))
    with opened(tmp_path) as record:
        assert set(record.done) == {(0,), (1,), (2,), (3,)}
    assert len(path.read_bytes().splitlines()) == 9


@pytest.mark.parametrize("kept", [0, 5])
def test_a_file_that_was_killed_as_it_was_begun_is_begun_again(tmp_path, kept):
    path = filled(tmp_path, seeds=[])
    path.write_bytes(path.read_bytes()[:kept])
    with opened(tmp_path) as record:
        assert record.done == {}
    assert path.read_text().startswith("seed,rule,good,cost,said,software,check\n")


def test_a_flipped_bit_anywhere_in_a_row_is_found_and_the_row_named(tmp_path):
    path = filled(tmp_path)
    text = path.read_bytes()
    begin = text.index(b"\n", text.index(b"\n") + 1) + 1  # the third line
    end = text.index(b"\n", begin)
    for place in range(begin, end, 3):
        flipped = bytearray(text)
        flipped[place] ^= 1 << (place % 7)
        path.write_bytes(bytes(flipped))
        with pytest.raises(InputError, match="rows were changed") as caught:
            opened(tmp_path)
        assert "line 3 of" in str(caught.value)
        assert "line 5" not in str(caught.value)
    path.write_bytes(text)
    with opened(tmp_path) as record:
        assert len(record.done) == 4


@pytest.mark.parametrize(
    "edit",
    [
        lambda line: line.replace("0.5", "0.6"),
        lambda line: line.replace("True", "False"),
        lambda line: line.replace('"x, ""y"""', "z"),
        lambda line: line.replace("numpy 2", "numpy 1"),
        lambda line: line + ",more",
        lambda line: line.rsplit(",", 1)[0],
        lambda line: "",
    ],
)
def test_edited_rows_are_named_with_their_unit(tmp_path, edit):
    path = filled(tmp_path)
    lines = path.read_text().splitlines()
    lines[5] = edit(lines[5])
    path.write_text("\n".join(lines) + "\n")
    before = path.read_bytes()
    unit_named = r"line 6 of \S+runs.csv( \(seed 2\))?\. "
    with pytest.raises(InputError, match=f"changed since they were written: {unit_named}Remove"):
        opened(tmp_path)
    assert path.read_bytes() == before


def test_a_row_of_another_study_is_found(tmp_path):
    mine, other = filled(tmp_path / "mine"), tmp_path / "other"
    with opened(other, study="another") as record:
        record.append((9,), unit(9))
    with mine.open("a") as file:
        file.writelines((other / "runs.csv").read_text().splitlines(keepends=True)[1:])
    with pytest.raises(InputError, match=r"line 10 of .*seed 9.*line 11 of"):
        opened(tmp_path / "mine")


def test_more_changed_rows_than_a_sentence_holds_are_counted(tmp_path):
    path = filled(tmp_path, seeds=range(10))
    path.write_text(path.read_text().replace("0.5", "0.7"))
    with pytest.raises(InputError, match=r"line 6 .* and 15 more"):
        opened(tmp_path)


def test_a_damaged_part_of_parquet_is_named(tmp_path):
    path = filled(tmp_path, "parquet") if pytest.importorskip("pyarrow") else None
    (part,) = path.glob("part-*.parquet")
    text = bytearray(part.read_bytes())
    text[len(text) // 2] ^= 4
    part.write_bytes(bytes(text[:-3]))
    with pytest.raises(InputError, match=r"part-000000\.parquet, which cannot be read"):
        opened(tmp_path, "parquet")


def test_an_edited_row_of_parquet_is_named(tmp_path):
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    (part,) = filled(tmp_path, "parquet").glob("part-*.parquet")
    found = parquet.read_table(part)
    costs = found.column("cost").to_pylist()
    costs[5] = 0.25
    place = found.schema.get_field_index("cost")
    parquet.write_table(found.set_column(place, "cost", arrow.array(costs)), part)
    with pytest.raises(InputError, match=r"row 5 of \S+parquet \(seed 2\)"):
        opened(tmp_path, "parquet")


def test_rows_that_were_removed_by_hand_are_run_again(tmp_path):
    path = filled(tmp_path)
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(lines[:3] + lines[4:]))
    with opened(tmp_path) as record:
        assert set(record.done) == {(0,), (2,), (3,)}
        record.append((1,), unit(1))
    assert len(path.read_text().splitlines()) == 9


@pytest.mark.parametrize("name", ["runs.csv", "study.json"])
@pytest.mark.parametrize("text", ["n,m\n3,5\n", '{"a": 1}\n', "[]\n", "[" * 200_000])
def test_a_folder_with_something_else_is_refused_and_left_alone(tmp_path, name, text):
    (tmp_path / name).write_text(text)
    with pytest.raises(InputError, match="not the record of a study"):
        opened(tmp_path)
    assert (tmp_path / name).read_text() == text


def test_another_form_of_table_is_not_mixed_in(tmp_path):
    pytest.importorskip("pyarrow")
    filled(tmp_path)
    with pytest.raises(InputError, match="table = 'csv', this one has 'parquet'"):
        opened(tmp_path, "parquet")
    with opened(tmp_path, "parquet", fresh=True) as record:
        assert record.done == {}
    assert not (tmp_path / "runs.csv").exists()


def test_an_unknown_form_and_a_missing_library_are_refused(tmp_path, monkeypatch):
    from casadi_hybrid.basics.record import tables

    with pytest.raises(InputError, match="table"):
        opened(tmp_path / "none", "xlsx")
    monkeypatch.setattr(tables, "find_spec", lambda name: None)
    with pytest.raises(InputError, match="pyarrow, which is not installed"):
        opened(tmp_path / "none", "parquet")
    assert not (tmp_path / "none").exists()


# One run at a time.


def test_a_second_run_in_the_folder_is_locked_out_until_the_first_is_done(tmp_path):
    with opened(tmp_path), pytest.raises(InputError, match=r"in use by process \d+ on"):
        opened(tmp_path)
    with opened(tmp_path):
        pass


def test_a_refused_folder_is_let_go(tmp_path):
    filled(tmp_path)
    for _ in range(2):
        with pytest.raises(InputError, match="study = 'test'"):
            opened(tmp_path, study="another")


def test_the_lock_of_a_killed_process_is_free(tmp_path):
    code = (  # what the lock does, without the seconds that the package takes to load
        "import fcntl, os, sys\n"
        f"file = open({str(tmp_path / '.lock')!r}, 'a+')\n"
        "fcntl.flock(file, fcntl.LOCK_EX)\n"
        "file.write(f'process {os.getpid()} on a machine')\nfile.flush()\n"
        "print(os.getpid(), flush=True)\nsys.stdin.read()"
    )
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen([sys.executable, "-c", code], **pipes) as other:
        pid = int(other.stdout.readline())
        with pytest.raises(InputError, match=f"in use by process {pid} on"):
            Lock(tmp_path)
        other.kill()
    with contextlib.closing(Lock(tmp_path)):
        pass


# Disks that fail.


def test_a_folder_that_cannot_be_written_to_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match=r"file/below cannot be written to: \w"):
        writable(tmp_path / "file" / "below")
    assert list(writable(tmp_path / "new").iterdir()) == []


def test_rows_that_the_disk_did_not_take_are_written_with_the_next(tmp_path, monkeypatch, capsys):
    whole, full = Lines.add, [True]

    def add(self, rows, *, now=False):
        if rows and full[0]:
            raise OSError(28, "No space left on device")
        whole(self, rows, now=now)

    monkeypatch.setattr(Lines, "add", add)
    with opened(tmp_path) as record:
        record.append((0,), unit(0))
        record.append((1,), unit(1))
        assert "No space left" in record.unwritten
        full[0] = False
        record.append((2,), unit(2))
        assert record.unwritten == ""
    assert len(re.findall("No space left", capsys.readouterr().err)) == 1
    with opened(tmp_path) as record:
        assert set(record.done) == {(0,), (1,), (2,)}


def test_a_write_that_stops_half_way_leaves_no_half_row(tmp_path, monkeypatch):
    path = filled(tmp_path)
    before = path.read_bytes()
    lines, really = Lines(path, COLUMNS), open

    class Half:
        def __enter__(self):
            return self

        def __exit__(self, *error):
            pass

        def write(self, text):
            with really(path, "ab") as file:
                return file.write(text[: len(text) // 2])

    monkeypatch.setattr(type(path), "open", lambda *given, **more: Half())
    with pytest.raises(OSError, match="a part only"):
        lines.add([["1", "a", "True", "0.5", ""]])
    monkeypatch.undo()
    assert path.read_bytes() == before


def test_what_is_packed_into_a_cell_comes_back():
    value = {"a": 1 / 3, "b": [None, 2, "é, \n"], "c": np.array(ODD), "d": np.float64(0.1)}
    back = unpacked(packed(value))
    assert back["c"].tobytes() == np.array(ODD).tobytes()
    assert {key: back[key] for key in "abd"} == {"a": 1 / 3, "b": [None, 2, "é, \n"], "d": 0.1}
    with pytest.raises(InputError, match="set cannot be kept"):
        packed({1})
