"""A controller as C: its structures, its answers beside Python's, what it does without a plan."""

import re
import subprocess

import numpy as np
import pytest

from casadi_hybrid import InputError
from casadi_hybrid.building.compiler import find_compiler
from casadi_hybrid.cli import main
from casadi_hybrid.control import (
    MPC,
    Collocation,
    Free,
    Model,
    OptimalControl,
    Scenarios,
    SingleShooting,
)
from casadi_hybrid.engine.export.measure import STRICT, measure
from casadi_hybrid.engine.library import engine

INTERVAL = 0.1
DRIVER = """
#include <stdio.h>
#include "NAME_control.h"
static NAME_controller controller;
static int back(const NAME_inputs *inputs, NAME_outputs *outputs) {
    double *u = (double *)outputs;
    (void)inputs;
    u[0] = 100.0;
    return 0;
}
int main(int argc, char **argv) {
    NAME_inputs inputs = NAME_written;
    NAME_outputs outputs;
    double *v = (double *)&inputs, *u = (double *)&outputs, plan[NAME_NUMBERS];
    int i, by, count;
    (void)argv;
    NAME_begin(&controller);
    if (argc > 1) controller.fallback = back;
    while (scanf("%d", &controller.in.max_iter) == 1) {
        for (i = 0; i < UPPER_INPUTS; i++)
            if (scanf("%lf", v + i) != 1) return 1;
        by = NAME_step(&controller, &inputs, &outputs);
        printf("%d %d", by, controller.out.status);
        for (i = 0; i < UPPER_OUTPUTS; i++) printf(" %.17g", u[i]);
        count = NAME_read(&controller, UPPER_READ_PLACE, plan);
        for (i = 0; i < count; i++) printf(" %.17g", plan[i]);
        printf("\\n");
    }
    return 0;
}
"""


@pytest.fixture(scope="module", autouse=True)
def there_is_an_engine():
    if engine() is None or find_compiler() is None:
        pytest.skip("an export needs the engine and is compiled here")


def cart(method=None, held=0.0, **more):
    """A cart, pulled by a spring, with names that are no words of C."""
    model = Model("cart")
    place = model.state("place", lower=-1, upper=2, unit="m")
    speed = model.state("cart speed", 1, lower=-1.5, upper=1.5, scale=2.0, unit="m/s")
    force = model.control("double", lower=-8, upper=6, scale=10.0, unit="N")
    mass = model.parameter("mass", 1.0, unit="kg")
    goal = model.reference("goal", unit="m")
    model.rates({"place": speed, "cart speed": (force - held) / mass - 0.1 * speed**3})
    ocp = OptimalControl(
        model, **{"duration": 1.0, "intervals": 10, **more}, method=method, name="The cart"
    )
    ocp.initial()
    ocp.minimize("distance", integral=(place - goal) ** 2 + 0.01 * force**2)
    ocp.moves("double", price=1e-3, limit=4.0)
    return ocp


def compiled(written, folder, trajectory="PLACE"):
    """Run the controller over rows (most iterations, inputs), return its lines as numbers."""
    name, source = written.name, folder / "driver.c"
    text = DRIVER.replace("NAME_NUMBERS", "1000").replace("NAME", name)
    text = text.replace("READ_PLACE", f"READ_{trajectory}")
    source.write_text(text.replace("UPPER", name.upper()))
    objects = [file for file in written.files if file.endswith(".c")]
    sources = [file for file in objects if file not in ("main.c", "replay.c")]
    compiler = find_compiler()
    command = [*compiler.command, *STRICT, *sources, str(source), "-lm", "-o", str(folder / "run")]
    done = subprocess.run(command, cwd=written.folder, capture_output=True, text=True, check=False)
    assert not done.returncode, done.stderr

    def run(rows, *arguments):
        spoken = "\n".join(" ".join(map(repr, map(float, row))) for row in rows)
        spoken = re.sub(r"^(\d+)\.0 ", r"\1 ", spoken, flags=re.MULTILINE)
        found = subprocess.run(
            [str(folder / "run"), *arguments], input=spoken, capture_output=True, text=True,
            check=True,
        )  # fmt: skip
        return [np.array(line.split(), dtype=float) for line in found.stdout.splitlines()]

    return run


def after(x, u):
    """The plant, lighter than the model believes."""
    for _ in range(10):
        x = x + INTERVAL / 10 * np.array([x[1], u / 0.8 - 0.1 * x[1] ** 3])
    return x


@pytest.mark.parametrize("method", [None, Collocation(2), SingleShooting()], ids=str)
def test_a_loop_in_c_is_that_of_python(method, tmp_path):
    ocp = cart(method)
    written = MPC(ocp).export(tmp_path / "c", [1.0, 0.0], mass=1.1)
    run = compiled(written, tmp_path)
    goals = [np.full(11, 0.2 if k < 6 else -0.3) for k in range(12)]
    x, before, rows, by_hand = np.array([1.0, 0.3]), 0.0, [], []
    for k in range(12):
        found = ocp.solve(x, mass=1.1, goal=goals[k], double_previous=before)
        assert found.success
        rows.append([500, *x, 1.1, *goals[k]])
        by_hand.append(found)
        before = found["double"][0]
        x = after(x, before)
    for line, found in zip(run(rows), by_hand, strict=True):
        by, status, force, *place = line
        assert (by, status) == (0, 0)
        assert force == pytest.approx(found["double"][0], abs=2e-5)
        expected = found["place"] if len(place) > 1 else found["place"][:1]
        np.testing.assert_allclose(place, expected, atol=1e-5)


def test_without_a_plan_it_goes_on_with_the_last_one_then_the_fallback_or_the_default(tmp_path):
    ocp = cart(held=2.0)
    mpc = MPC(ocp)
    written = mpc.export(tmp_path / "c", [0.0, 0.0])
    run = compiled(written, tmp_path)
    lost, seen = [500, np.nan, 0.0, 1.0, *np.zeros(11)], [500, 0.5, 0.0, 1.0, *np.zeros(11)]
    none = run([lost, lost])
    assert [line[0] for line in none] == [4, 4]
    assert none[0][2] == pytest.approx(2.0, abs=1e-6)  # the spring is held: it is at rest
    plan = ocp.solve([0.5, 0.0], double_previous=2.0)["double"]
    lines = run([lost, seen, *10 * [lost]], "with a fallback")
    assert [line[0] for line in lines] == [3, 0, *9 * [2], 3]
    assert lines[0][2] == 6.0  # of 100 N what the limits allow
    lines = run([lost, seen, *10 * [lost]])
    assert [line[0] for line in lines] == [4, 0, *9 * [2], 4]
    np.testing.assert_allclose([line[2] for line in lines[1:11]], plan, atol=1e-4)
    late = [0, 0.5, 0.0, 1.0, *np.zeros(11)]
    assert run([late])[0][0] == 4  # stopped at once, at a point that is no plan for this state


def test_a_state_outside_its_limits_has_a_plan_that_comes_back(tmp_path):
    run = compiled(MPC(cart()).export(tmp_path / "c", [1.0, 0.0]), tmp_path)
    rows = [[500, 0.5, speed, 1.0, *np.zeros(11)] for speed in (1.0, 1.7, 1.500001)]
    assert [line[:2].tolist() for line in run(rows)] == 3 * [[0, 0]]


def test_of_scenarios_the_robust_control_is_computed(tmp_path):
    both = Scenarios(cart(), {"light": {"mass": 0.8}, "heavy": {"mass": 1.5}})
    written = MPC(both).export(tmp_path / "c", [1.0, 0.0], "robust")
    text = (written.folder / "robust_control.h").read_text()
    assert "double mass" not in text  # each scenario has its own
    run = compiled(written, tmp_path, "LIGHT_PLACE")
    (line,) = run([[500, 0.7, 0.1, *np.zeros(11)]])
    by_hand = both.solve([0.7, 0.1])["light"]["double"][0]
    assert line[0] == 0
    assert line[2] == pytest.approx(by_hand, abs=2e-5)


def test_the_folder_says_names_units_and_memory(tmp_path):
    written = MPC(cart()).export(tmp_path, [1.0, 0.0])
    assert written.name == "the_cart"
    readme = (tmp_path / "README.md").read_text()
    assert "| state | `inputs.cart_speed` | 1 | m/s | cart speed |" in readme
    assert "| reference | `inputs.goal` | 11 | m | goal |" in readme
    assert "| control | `outputs.control_double` | 1 | N | double |" in readme
    said = int(re.search(r"sizeof\(the_cart_controller\)` is (\d+) bytes", readme)[1])
    probe = tmp_path / "probe.c"
    probe.write_text(
        '#include <stdio.h>\n#include "the_cart_control.h"\n'
        'int main(void) { printf("%zu", sizeof(the_cart_controller)); return 0; }\n'
    )
    compiler = find_compiler()
    subprocess.run(
        [*compiler.command, "-I.", "-Icore", "probe.c", "-o", "probe"], cwd=tmp_path, check=True
    )
    assert int(subprocess.check_output([tmp_path / "probe"])) == said
    assert "the_cart_control.c" in written.files
    measured = measure(written, count=False)
    assert measured.difference <= 1e-9
    assert measured.solved == (11, 11)
    ocp = cart()  # a plain export into the same folder leaves no controller there
    ocp.solver.export(tmp_path, "the_cart", **ocp.numbers([1.0, 0.0]).arguments)
    assert not (tmp_path / "the_cart_control.c").exists()


def test_a_problem_alone_is_exported_by_name_too(tmp_path):
    ocp = cart(duration=Free(1.0, 0.5, 2.0))
    ocp.final(place=0)
    written = ocp.export(tmp_path / "c", [0.8, 0.0])
    run = compiled(written, tmp_path)
    rows = [[500, x, 0.0, 1.0, *np.zeros(11)] for x in (0.8, 0.6)]
    before = 0.0
    for line, row in zip(run(rows), rows, strict=True):
        found = ocp.solve([row[1], 0.0], double_previous=before)
        before = found["double"][0]
        assert line[0] == 0
        assert line[2] == pytest.approx(before, abs=2e-5)
        np.testing.assert_allclose(line[3:], found["place"], atol=1e-5)


def test_what_cannot_be_written_is_refused(tmp_path):
    with pytest.raises(InputError, match="a delay is not exported"):
        MPC(cart(), delay=1).export(tmp_path)
    with pytest.raises(InputError, match=r"period is 0\.2, an interval 0\.1"):
        MPC(cart(), period=0.2).export(tmp_path)
    with pytest.raises(InputError, match=r"free duration or uneven intervals.*ocp.export"):
        MPC(cart(duration=Free(1.0, 0.5, 2.0))).export(tmp_path)
    ocp = cart()
    del ocp.fixed["place"]
    with pytest.raises(InputError, match="leaves place free at the start"):
        ocp.export(tmp_path)
    model = Model("twice")
    model.rates({"a b": model.state("a b"), "a_b": model.state("a_b")})
    model.control("u")
    twice = OptimalControl(model, duration=1.0, intervals=2)
    twice.initial()
    twice.minimize("u", sum=model.symbol("u") ** 2)
    with pytest.raises(InputError, match="'a_b' and 'a b' are both 'a_b' in C"):
        MPC(twice).export(tmp_path)


PLANT = """
from casadi_hybrid.control import MPC, Model, OptimalControl

model = Model("lift")
height, pull = model.state("height", unit="m"), model.control("pull", lower=-1, upper=1, unit="N")
drag = model.parameter("drag", 0.5)
model.rates(height=pull - drag * height)
ocp = OptimalControl(model, duration=1.0, intervals=5)
ocp.initial(height=1.0)
ocp.minimize("distance", integral=height**2 + 0.1 * pull**2)
mpc = MPC(ocp)


def heavy():
    return mpc, {"x": [0.5], "drag": 0.6}
"""


@pytest.mark.parametrize(("name", "drag"), [("mpc", 0.5), ("ocp", 0.5), ("heavy", 0.6)])
def test_a_command_exports_it(name, drag, tmp_path, capsys):
    (tmp_path / "lift.py").write_text(PLANT)
    place = f"{tmp_path / 'lift.py'}:{name}"
    assert main(["export", place, "--out", str(tmp_path / "c"), "--warm-only"]) == 0
    assert "the warm mode alone" in capsys.readouterr().out
    assert f".drag = {drag}" in (tmp_path / "c" / "lift_control.c").read_text()


def test_a_command_says_what_there_is(tmp_path, capsys):
    (tmp_path / "lift.py").write_text(PLANT)
    assert main(["export", f"{tmp_path / 'lift.py'}:mpcc", "--out", str(tmp_path / "c")]) != 0
    assert "'mpc'" in capsys.readouterr().err
