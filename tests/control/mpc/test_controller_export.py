"""A controller as C: its structures, its answers beside Python's, what it does without a plan."""

import importlib.util
import re
import shutil
import subprocess
import sys
from pathlib import Path

import casadi as ca
import numpy as np
import pytest
from support.paths import DATA

from casadi_hybrid import InputError
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
from casadi_hybrid.core.export.compare import SECTIONS, STRICT, compare
from casadi_hybrid.problem.building.compiler import find_compiler

INTERVAL = 0.1
DRIVER = (DATA / "control_driver.c").read_text("utf-8")


@pytest.fixture(scope="module", autouse=True)
def there_is_a_compiler():
    if find_compiler() is None:
        pytest.skip("an export is compiled here")


def cart(method=None, held=0.0, **more):
    """A cart, pulled by a spring, with names that are no words of C."""
    model = Model("cart")
    place = model.state("place", lower=-1, upper=2, unit="m")
    speed = model.state("cart speed", 1, lower=-1.5, upper=1.5, scale=2.0, unit="m/s")
    force = model.control("double", lower=-8, upper=6, scale=10.0, unit="N")
    mass = model.parameter("mass", 1.0, unit="kg")
    goal = model.reference("goal", 0.0, unit="m")
    model.rates({"place": speed, "cart speed": (force - held) / mass - 0.1 * speed**3})
    ocp = OptimalControl(
        model, **{"duration": 1.0, "intervals": 10, **more}, method=method, name="The cart"
    )
    ocp.initial()
    ocp.minimize("distance", integral=(place - goal) ** 2 + 0.01 * force**2)
    ocp.moves("double", price=1e-3, limit=4.0)
    return ocp


def compiled(written, folder, trajectory="PLACE", change=""):
    """Run the controller over rows (most iterations, inputs), return its lines as numbers."""
    name, source = written.name, folder / "driver.c"
    text = DRIVER.replace("NAME_NUMBERS", "1000").replace("NAME", name)
    text = text.replace("CHANGE", change).replace("READ_PLACE", f"READ_{trajectory}")
    source.write_text(text.replace("UPPER", name.upper()))
    objects = [file for file in written.files if file.endswith(".c")]
    sources = [file for file in objects if file not in ("main.c", "replay.c")]
    compiler = find_compiler()
    command = [*compiler.command, *STRICT, *SECTIONS, *sources, str(source), "-lm", "-o",
               str(folder / "run")]  # fmt: skip
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


STATUS = ["solved", "feasible", "last plan", "fallback", "default", "softened"]


def alike(mpc, run, measured, near=1e-4):
    """Steps of C and of Python at the same measurements; return the statuses."""
    said = []
    for row, line in zip(measured, run([[500, *row] for row in measured]), strict=True):
        state, mass, goal = row[:2], row[2], row[3:]
        step = mpc.step(state, mass=mass, goal=goal)
        said.append(step.status)
        assert STATUS[int(line[0])] == step.status, (said, step.reason)
        assert line[2] == pytest.approx(step["double"], abs=near)
    return said


def test_a_state_outside_its_limits_is_eased_as_in_python_or_begins_outside(tmp_path):
    rows = [[0.5, speed, 1.0, *np.zeros(11)] for speed in (1.0, 1.7, 1.6, 1.500001, 1.2)]
    mpc = MPC(cart())
    written = mpc.export(tmp_path / "c", [1.0, 0.0])
    assert "the_cart_softened.c" in written.files
    run = compiled(written, tmp_path)
    assert alike(mpc, run, rows) == ["solved", "softened", "softened", "solved", "solved"]
    alone = MPC(cart(), soften=None).export(tmp_path / "c", [1.0, 0.0])
    assert not list((tmp_path / "c").glob("*softened*"))
    run = compiled(alone, tmp_path)
    assert [line[:2].tolist() for line in run([[500, *row] for row in rows])] == 5 * [[0, 0]]


def test_a_softened_solve_that_a_limit_ends_goes_on_in_the_next_step(tmp_path):
    run = compiled(MPC(cart()).export(tmp_path / "c", [0.0, 0.0]), tmp_path)
    few = [[12, 2.8, 1.2, 1.0, *np.zeros(11)]] * 6  # far outside, which takes over 40 steps alone
    by = [line[0] for line in run([[500, 0.5, 0.0, 1.0, *np.zeros(11)], *few])]
    assert (by[:2], by[4:]) == ([0, 2], [5, 5, 5])


def test_limits_that_cannot_be_kept_are_exceeded_as_little_as_in_python(tmp_path):
    ocp = cart()
    ocp.path("wall", ocp.model.symbol("place"), upper=0.6, unit="m")
    mpc = MPC(ocp)
    run = compiled(mpc.export(tmp_path / "c", [0.0, 0.0]), tmp_path)
    # Towards a wall, too fast to stop before it; then away from it.
    rows = [[x, v, 1.0, *np.zeros(11)] for x, v in ((0, 1), (0.55, 1.4), (0.58, 1), (0.5, 0))]
    assert alike(mpc, run, rows) == ["solved", "softened", "softened", "solved"]


@pytest.mark.parametrize(
    ("method", "asked", "points"),  # 8 intervals; the ends of all but the last have two values
    [(Collocation(points="legendre"), 1e-9, 9 + 24), (Collocation(1, inner=1), 0.0, 8 + 8),
     (Collocation(), 0.0, 24), (Collocation(), 1e-9, 9 + 7 + 16)],
)  # fmt: skip
def test_limits_of_algebraic_states_are_soft_where_they_hold(method, asked, points, tmp_path):
    model = Model("tank")
    c, u, z = model.state("c"), model.control("u", lower=0), model.algebraic("z", upper=0.7)
    model.rates(c=u - 0.2 * z)
    model.equations(z=z + 0.1 * z**3 - c)
    ocp = OptimalControl(model, duration=2.0, intervals=8, method=method)
    ocp.initial()
    ocp.minimize("level", integral=(c - 2) ** 2 + 0.01 * u**2, end=asked * z)
    mpc = MPC(ocp)
    run = compiled(mpc.export(tmp_path / "c", [0.5], loops=False), tmp_path, "C")
    lines = run([[500, level] for level in (0.6, 0.9, 0.88, 0.6)])
    for level, line in zip((0.6, 0.9, 0.88, 0.6), lines, strict=True):
        step = mpc.step([level])
        assert (line[0], line[2]) == (STATUS.index(step.status), pytest.approx(step["u"], abs=1e-4))
        assert list(step.violated) == ["z"] * (level > 0.7)
    names = str(mpc._answers.aid.problem.program.variable_names)
    assert names.count("violation of limits of z") == points
    own = ocp.reopened()
    own.soften("z", 5.0)
    assert MPC(own).step([0.9]).status == "solved"


@pytest.mark.parametrize("delay", [1, 0.03, 0.25], ids=str)
def test_a_delay_is_predicted_as_in_python(delay, tmp_path):
    mpc = MPC(cart(), delay=delay)
    run = compiled(mpc.export(tmp_path / "c", [1.0, 0.0]), tmp_path,
                   change="if (!controller.begun) controller.applied[0] = 3.0;")  # fmt: skip
    mpc.applied = 3.0
    rng = np.random.default_rng(3)
    rows = [[0.5 * x, v, 1.1, *np.full(11, 0.1)] for x, v in rng.uniform(-1, 1, (8, 2))]
    assert set(alike(mpc, run, rows)) == {"solved"}


def test_a_delay_counts_in_the_time_of_a_problem(tmp_path):
    model = Model("swing")
    angle, acts = model.state("place", unit="rad"), model.state("acts")
    torque = model.control("double", lower=-3, upper=3)
    model.rates(place=acts + 0.5 * ca.sin(3 * model.time), acts=300 * (torque - acts))  # stiff
    ocp = OptimalControl(model, duration=1.0, intervals=10, method=Collocation(3))
    ocp.initial()
    ocp.minimize("distance", integral=angle**2 + 0.1 * torque**2)
    mpc = MPC(ocp, delay=2)
    run = compiled(mpc.export(tmp_path / "c", [0.3, 0.0]), tmp_path)
    places = [0.4, 0.3, 0.1, 0.0, -0.1, 0.0]
    for k, line in enumerate(run([[500, x, 1.0, INTERVAL * k] for k, x in enumerate(places)])):
        step = mpc.step([places[k], 1.0], INTERVAL * k)
        assert (line[0], step.status) == (0, "solved")
        assert line[2] == pytest.approx(step["double"], abs=1e-6)


@pytest.mark.parametrize("method", [None, Collocation(2), SingleShooting()], ids=str)
def test_limits_change_by_name_in_c(method, tmp_path):
    mpc = MPC(cart(method))
    mpc.limits({"moves of double": (-3.5, 3.5)})  # what has changed before the export
    written = mpc.export(tmp_path / "c", [0.8, 0.0])
    readme = (written.folder / "README.md").read_text()
    assert "| limit | `controller.limits.double_upper` | 1 | N | double upper |" in readme
    run = compiled(
        written, tmp_path, "PLACE",
        "if (inputs.mass == 1.2) controller.limits.cart_speed_lower = -0.3,"
        " controller.limits.double_upper = 2.0, controller.limits.moves_of_double_lower = -1.5;",
    )  # fmt: skip
    rows = [[0.8 - 0.02 * k, -0.1, 1.0 if k < 3 else 1.2, *np.zeros(11)] for k in range(6)]
    assert set(alike(mpc, lambda rows: run(rows)[:3], rows[:3])) == {"solved"}
    mpc.limits({"cart speed": (-0.3, 1.5), "double": (-8, 2), "moves of double": (-1.5, 3.5)})
    assert set(alike(mpc, lambda _: run([[500, *row] for row in rows])[3:], rows[3:])) == {"solved"}


@pytest.mark.parametrize("robust", [False, True])
def test_limits_that_follow_parameters_do_so_in_c(robust, tmp_path):
    model = Model("cart")
    top, fast = model.parameter("top", 1.0), model.parameter("fast", [2.0, 1.0])
    place, speed = model.state("place"), model.state("speed", upper=fast[0], scale=3.0)
    force = model.control("double", lower=-top, upper=fast[1] * top, scale=7.0)
    model.rates(place=speed, speed=force)
    ocp = OptimalControl(model, duration=1.0, intervals=10)
    ocp.initial()
    ocp.minimize("distance", integral=place**2 + 0.01 * force**2)
    mpc = MPC(Scenarios(ocp, {"a": {}, "b": {"fast": [2, 0.4]}}) if robust else ocp, default=0)
    run = compiled(mpc.export(tmp_path / "c", [1, 0], "cart"), tmp_path, "A_" * robust + "PLACE",
                   "if (inputs.top == 9) controller.limits.double_upper = 0.1;")  # fmt: skip
    rows = np.array([[1, 0, 1, 2, 1], [1, 0, 0.5, 2, 1], [-1, 0, 2, 2, 3], [-1, 0.4, 3, 0.2, 1],
                     [-1, np.nan, 3, 0.2, 1], [-1, 0, 9, 2, 1]])  # fmt: skip
    for row, line in zip(rows, run([[500, *row] for row in rows]), strict=True):
        mpc.limits(double=(-9, 0.1) if row[2] == 9 else None)
        own = {"fast": row[3:]}
        step = mpc.step(row[:2], top=row[2], **({"a": own} if robust else own))
        assert STATUS[int(line[0])] == step.status
        assert line[2] == pytest.approx(step["double"], abs=1e-5)


def test_a_step_keeps_its_deadline_where_there_is_a_clock(tmp_path):
    mpc = MPC(cart(), deadline=0.05, default=0.0)
    written = mpc.export(tmp_path / "c", [0.8, 0.0])
    run = compiled(
        written, tmp_path, "PLACE",
        "controller.in.now = controller.in.max_time == 0.05 ? ticks : NULL;",
    )  # fmt: skip
    row = [500, 0.5, 0.3, 1.0, *np.zeros(11)]
    (line,) = run([row])
    assert line[:2].tolist() == [4, -1]  # one look at the clock later it is over


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
    written = MPC(cart(), delay=0.15).export(tmp_path, [1.0, 0.0])
    assert written.name == "the_cart"
    readme = (tmp_path / "README.md").read_text()
    assert "| state | `inputs.cart_speed` | 1 | m/s | cart speed |" in readme
    assert "| reference | `inputs.goal` | 11 | m | goal |" in readme
    assert "| control | `outputs.control_double` | 1 | N | double |" in readme
    assert 0 < readme.index("the_cart_step(") < readme.index("the_cart_solve(")  # first the loop
    listed = "|".join(re.findall(r"`([\w.*-]+\.[\w]+)`", readme.partition("## Files")[2]))
    listed = re.compile(listed.replace(".", r"\.").replace("*", ".*"))
    own = [f for f in written.files if not f.startswith(("core/", "README", "CMake", "LICENSE"))]
    assert [file for file in own if not listed.fullmatch(file)] == []
    said = int(re.search(r"sizeof\(the_cart_controller\)` \| (\d+) \|", readme)[1])
    probe = tmp_path / "probe.c"
    probe.write_text(
        '#include <stdio.h>\n#include "the_cart_control.h"\n'
        'int main(void) { printf("%zu", sizeof(the_cart_controller)); return 0; }\n'
    )
    compiler = find_compiler()
    subprocess.run([*compiler.command, "-I.", "probe.c", "-o", "probe"], cwd=tmp_path, check=True)
    assert int(subprocess.check_output([tmp_path / "probe"])) == said == written.controller
    assert f"controller          {said} bytes" in str(written)
    assert "the_cart_control.c" in written.files
    compared = compare(written)
    assert compared.difference <= 1e-9
    assert compared.solved == (11, 11)
    ocp = cart()  # a plain export into the same folder leaves no controller there
    ocp.solver.export(tmp_path, "the_cart", **ocp.numbers([1.0, 0.0]).arguments)
    assert not (tmp_path / "the_cart_control.c").exists()


def cross_compiler(name, folder):
    """A compiler for the Cortex-M7 with its flags; those of gcc are in the exported folder."""
    if name == "arm-none-eabi-gcc":
        flags = re.search(r'FLAGS_INIT "(-mcpu.*)"', (folder / "cortex-m7.cmake").read_text())[1]
        return [name, *flags.split()] if shutil.which(name) else None
    found = importlib.util.find_spec("ziglang")
    if found is None:
        return None
    headers = Path(found.submodule_search_locations[0]) / "lib" / "libc" / "include"
    return [
        *(sys.executable, "-m", "ziglang", "cc"),
        *("-target", "thumb-freestanding-eabihf", "-mcpu=cortex_m7+fp_armv8d16"),
        *("-isystem", str(headers / "arm-linux-musl"), "-isystem", str(headers / "generic-musl")),
    ]


@pytest.mark.parametrize("name", ["ziglang", "arm-none-eabi-gcc"])
def test_it_compiles_for_a_cortex_m7(tmp_path, name):
    written = MPC(cart(), delay=0.15).export(tmp_path, [1.0, 0.0])
    compiler = cross_compiler(name, tmp_path)
    if compiler is None:
        pytest.skip(f"there is no {name}")
    own = [f for f in written.files if f.startswith("the_cart") and f.endswith(".c")]
    objects = []
    for file in own:
        objects.append(str(tmp_path / file.replace(".c", ".o")))
        command = [*compiler, *STRICT, "-c", file]
        done = subprocess.run(
            [*command, "-o", objects[-1]], cwd=tmp_path, capture_output=True, text=True,
            check=False,
        )  # fmt: skip
        assert not done.returncode, done.stderr
    step = Path(objects[own.index("the_cart_control.c")]).read_bytes()
    assert re.search(rb"cortex-m7|7E-M", step)  # as clang and gcc name it
    assert b"__aeabi_dmul" not in step  # products in double precision by the processor itself


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
        assert line[2] == pytest.approx(before, abs=5e-5)
        np.testing.assert_allclose(line[3:], found["place"], atol=1e-5)
    header = (tmp_path / "c" / "the_cart_control.h").read_text()
    assert "duration is free and no period follows" in header


def test_what_cannot_be_written_is_refused(tmp_path):
    model = Model("algebraic")
    x, z = model.state("x"), model.algebraic("z")
    model.rates(x=z + model.control("u"))
    model.equations(z=z + x)
    held = OptimalControl(model, duration=1.0, intervals=5, method=Collocation(2))
    held.initial(x=1)
    held.minimize("x", integral=x**2)
    loose, free = cart(), cart(duration=Free(1.0, 0.5, 2.0))
    del loose.fixed["place"]
    model = Model("twice")
    model.rates({"a b": model.state("a b"), "a_b": model.state("a_b")})
    model.control("u")
    twice = OptimalControl(model, duration=1.0, intervals=2)
    twice.initial()
    twice.minimize("u", sum=model.symbol("u") ** 2)
    (file := tmp_path / "file").write_text("")
    for call, words in (
        (
            lambda: MPC(held, delay=1).export(tmp_path),
            "has algebraic .*no prediction over a delay in",
        ),
        (lambda: MPC(cart(), period=0.2).export(tmp_path), r"period is 0\.2, an interval 0\.1"),
        (lambda: MPC(free).export(tmp_path), "free duration or uneven intervals.*ocp.export"),
        (lambda: loose.export(tmp_path), "leaves place free at the start"),
        (lambda: MPC(twice).export(tmp_path), "'a_b' and 'a b' are both 'a_b' in C"),
        (lambda: cart().export(file, [0.1, 0]), "folder must be a folder, but .* is a file"),
        (lambda: MPC(cart()).export(tmp_path, x0=[0.1, 0]), "is x=, not x0="),
    ):
        with pytest.raises(InputError, match=words):
            call()


PLANT = """
from casadi_hybrid.control import MPC, Model, OptimalControl

model = Model("lift")
height = model.state("height", upper=3, unit="m")
pull = model.control("pull", lower=-1, upper=1, unit="N")
drag = model.parameter("drag", 0.5)
model.rates(height=pull - drag * height)
ocp = OptimalControl(model, duration=1.0, intervals=5)
ocp.initial(height=1.0)
ocp.minimize("distance", integral=height**2 + 0.1 * pull**2)
mpc = MPC(ocp)


def heavy():
    return mpc, {"x": [0.5], "drag": 0.6}
"""


@pytest.mark.parametrize(("of", "drag"), [("", 0.5), (":mpc", 0.5), (":ocp", 0.5), (":heavy", 0.6)])
def test_a_command_exports_it(of, drag, tmp_path, capsys):
    (tmp_path / "lift.py").write_text(PLANT)
    place = f"{tmp_path / 'lift.py'}{of}"
    assert main(["export", place, "--out", str(tmp_path / "c"), "--warm-only"]) == 0
    out = capsys.readouterr().out
    assert "the warm mode alone" in out
    assert "solved 11 of 11" in out or of == ":ocp"
    (tmp_path / "lift.py").write_text(PLANT.replace("[0.5]", "[4.0]"))
    where = f"{tmp_path / 'lift.py'}:heavy", "--out", str(tmp_path / "new" / "deep")
    assert main(["export", *where]) == 2
    said = "4 m at the start, 1 m above its limit 3 m. An export stores a solve: give a state with"
    assert said in capsys.readouterr().err
    assert not (tmp_path / "new").exists()
    lacking = PLANT.replace('drag = model.parameter("drag", 0.5)', 'drag = model.reference("drag")')
    (tmp_path / "lift.py").write_text(lacking)
    assert main(["export", f"{tmp_path / 'lift.py'}:mpc", "--out", str(tmp_path / "new")]) == 2
    said = "'drag'; give it as drag=…, or declare it with the value that it is to have without."
    assert f"{said} Here it stands in the file, problem = (mpc, {{…}})" in capsys.readouterr().err
    assert f".drag = {drag}" in (tmp_path / "c" / "lift_control.c").read_text()


HOSTILE = ("*/ int evil; /*", "/*/", "m*/s\n#error", "\\", "??/", "/* \u2028*/")


@pytest.mark.parametrize("text", HOSTILE)
def test_a_users_text_stays_in_its_comment(text, tmp_path):
    model = Model(text, time_unit=text)
    x, u = model.state(f"{text} x", unit=text), model.control(f"{text} u", unit=text)
    model.rates({f"{text} x": u})
    ocp = OptimalControl(model, duration=1.0, intervals=2, name=text)
    ocp.initial()
    ocp.minimize(text, integral=x**2 + u**2)
    ocp.path(f"{text} row", x, upper=1, unit=text)
    MPC(ocp).export(tmp_path, [0.5], "mine", steps=1)
    sources = [str(file) for file in tmp_path.glob("mine*.c")]
    done = subprocess.run(
        [*find_compiler().command, *STRICT, "-fsyntax-only", f"-I{tmp_path}", *sources],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    code = re.sub(r"/\*.*?\*/", "", (tmp_path / "mine_control.h").read_text("utf-8"), flags=re.S)
    assert "int evil" not in code


def test_a_name_too_long_for_c_is_refused(tmp_path):
    with pytest.raises(InputError, match="of 300 characters, and C99 tells no more than 63 apart"):
        MPC(cart()).export(tmp_path, [0.5, 0.0], "n" * 300, steps=1)
    model = Model("cart")
    model.rates({"s" * 300: model.state("s" * 300) + model.control("u")})
    ocp = OptimalControl(model, duration=1.0, intervals=2)
    ocp.initial()
    with pytest.raises(InputError, match="has 300 characters in C"):
        MPC(ocp).export(tmp_path, [0.5], "mine", steps=1)
