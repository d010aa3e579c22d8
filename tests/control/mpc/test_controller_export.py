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
from support.cases.ocps import stated
from support.cases.watched import ended
from support.judges.refusals import assert_refused
from support.paths import DATA

from casadi_hybrid.cli import main
from casadi_hybrid.control import MPC, Collocation, Free, Model, Scenarios, SingleShooting, Soft
from casadi_hybrid.control.mpc.problem import softened
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
    cost = (place - goal) ** 2 + 0.01 * force**2
    ocp = stated(model, integral=cost, method=method, name="The cart", **more)
    ocp.moves("double", price=1e-3, limit=4.0)
    return ocp


def compiled(written, folder, trajectory="PLACE", change=""):
    """Run the controller over rows (most iterations, inputs), return its lines as numbers."""
    source, program = folder / "driver.c", folder / "run"
    words = {
        "NAME_NUMBERS": "1000",
        "READ_PLACE": f"READ_{trajectory}",
        "NAME": written.name,
        "UPPER": written.name.upper(),
        "CHANGE": change,
    }
    text = DRIVER
    for word, meaning in words.items():
        text = text.replace(word, meaning)
    source.write_text(text)
    sources = [f for f in written.files if f.endswith(".c") and f not in ("main.c", "replay.c")]
    command = [*find_compiler().command, *STRICT, *SECTIONS, *sources, source, "-lm", "-o", program]
    linked = ended(command, cwd=written.folder)
    assert not linked.returncode, linked.stderr

    def run(rows, *arguments):
        lines = [" ".join([str(int(row[0])), *map(repr, map(float, row[1:]))]) for row in rows]
        answer = ended([program, *arguments], input="\n".join(lines))
        return [np.array(line.split(), dtype=float) for line in answer.stdout.splitlines()]

    return run


def row(x, v, mass=1.0, goal=0.0, most=500):
    return [most, x, v, mass, *np.full(11, goal)]


LOST = row(np.nan, 0.0)


def after(x, u):
    for _ in range(10):
        x = x + INTERVAL / 10 * np.array([x[1], u / 0.8 - 0.1 * x[1] ** 3])
    return x


@pytest.mark.parametrize("method", [None, Collocation(2), SingleShooting()], ids=str)
def test_loop_in_c_equals_separate_solves(method, tmp_path):
    ocp = cart(method)
    run = compiled(MPC(ocp).export(tmp_path / "c", [1.0, 0.0], mass=1.1), tmp_path)
    x, before, rows, solutions = np.array([1.0, 0.3]), 0.0, [], []
    for k in range(12):
        goal = 0.2 if k < 6 else -0.3
        solution = ocp.solve(x, mass=1.1, goal=goal, double_previous=before)
        assert solution.success
        rows.append(row(*x, 1.1, goal))
        solutions.append(solution)
        before = solution["double"][0]
        x = after(x, before)
    for line, solution in zip(run(rows), solutions, strict=True):
        status, solver_status, force, *place = line
        assert (status, solver_status) == (0, 0)
        assert force == pytest.approx(solution["double"][0], abs=2e-5)
        np.testing.assert_allclose(place, solution["place"][: len(place)], atol=1e-5)
    assert len(place) == (1 if isinstance(method, SingleShooting) else 11)


def test_without_a_plan_fallback_or_default_act(tmp_path):
    ocp = cart(held=2.0)
    run = compiled(MPC(ocp).export(tmp_path / "c", [0.0, 0.0]), tmp_path)
    plan = ocp.solve([0.5, 0.0], double_previous=2.0)["double"]
    lines = run([LOST, row(0.5, 0.0), *10 * [LOST]], "with a fallback")
    assert [line[0] for line in lines] == [3, 0, *9 * [2], 3]
    assert lines[0][2] == 6.0  # of 100 N what the limits allow
    lines = run([LOST, row(0.5, 0.0), *10 * [LOST]])
    assert [line[0] for line in lines] == [4, 0, *9 * [2], 4]
    assert lines[0][2] == pytest.approx(2.0, abs=1e-6)  # the spring is held: it is at rest
    np.testing.assert_allclose([line[2] for line in lines[1:11]], plan, atol=1e-4)
    # Stopped at once, at a point that is no plan for this state.
    assert run([row(0.5, 0.0, most=0)])[0][0] == 4


STATUS = ["solved", "feasible", "last plan", "fallback", "default", "softened"]


def alike(mpc, lines, rows):
    statuses = []
    for (_, x, v, mass, *goal), line in zip(rows, lines, strict=True):
        step = mpc.step([x, v], mass=mass, goal=goal)
        statuses.append(step.status)
        assert STATUS[int(line[0])] == step.status, (statuses, step.reason)
        assert line[2] == pytest.approx(step["double"], abs=1e-4)
    return statuses


def test_limits_are_softened_as_in_python(tmp_path):
    rows = [row(0.5, speed) for speed in (1.0, 1.7, 1.6, 1.500001, 1.2)]
    ocp, walled = cart(), cart()
    walled.path("wall", walled.model.symbol("place"), upper=0.6, unit="m")
    # Towards a wall, too fast to stop before it; then away from it.
    to_wall = [row(0, 1), row(0.55, 1.4), row(0.58, 1), row(0.5, 0)]
    for problem, measured, last in ((walled, to_wall, []), (ocp, rows, ["solved"])):
        mpc = MPC(problem)
        run = compiled(mpc.export(tmp_path / "c", [0.0, 0.0]), tmp_path)
        expected = ["solved", "softened", "softened", "solved", *last]
        assert alike(mpc, run(measured), measured) == expected
    # Far outside it takes over 40 iterations alone: a softened solve goes on in the next step.
    statuses = [line[0] for line in run([row(0.5, 0.0), *6 * [row(2.8, 1.2, most=12)]])]
    assert (statuses[:2], statuses[4:]) == ([0, 2], [5, 5, 5])
    alone = MPC(cart(), soften=None).export(tmp_path / "c", [1.0, 0.0])
    assert not list((tmp_path / "c").glob("*softened*"))
    assert [line[:2].tolist() for line in compiled(alone, tmp_path)(rows)] == 5 * [[0, 0]]


@pytest.mark.parametrize(
    ("method", "price", "points"),  # 8 intervals; the ends of all but the last have two values
    [
        (Collocation(points="legendre"), 1e-9, 9 + 24),
        (Collocation(1, inner=1), 0.0, 8 + 8),
        (Collocation(), 0.0, 24),
        (Collocation(), 1e-9, 9 + 7 + 16),
    ],
)
def test_algebraic_limits_are_soft_where_they_hold(method, price, points, tmp_path):
    model = Model("tank")
    c, u, z = model.state("c"), model.control("u", lower=0), model.algebraic("z", upper=0.7)
    model.rates(c=u - 0.2 * z)
    model.equations(z=z + 0.1 * z**3 - c)
    costs = {"integral": (c - 2) ** 2 + 0.01 * u**2, "end": price * z}
    ocp = stated(model, duration=2.0, intervals=8, method=method, **costs)
    mpc, levels = MPC(ocp), (0.6, 0.9, 0.88, 0.6)
    run = compiled(mpc.export(tmp_path / "c", [0.5], loops=False), tmp_path, "C")
    for level, line in zip(levels, run([[500, level] for level in levels]), strict=True):
        step = mpc.step([level])
        assert (line[0], line[2]) == (STATUS.index(step.status), pytest.approx(step["u"], abs=1e-4))
        assert list(step.violated) == ["z"] * (level > 0.7)
    unknowns = softened(ocp, Soft(1e4)).program.variables
    amounts = [block for block in unknowns.values() if block.role.kind == "violation"]
    assert sum(block.where.size for block in amounts) == points
    own = ocp.reopened()
    own.soften("z", 5.0)
    assert MPC(own).step([0.9]).status == "solved"


@pytest.mark.parametrize("delay", [1, 0.03, 0.25], ids=str)
def test_delay_is_predicted_as_in_python(delay, tmp_path):
    mpc, applied = MPC(cart(), delay=delay), "if (!controller.begun) controller.applied[0] = 3.0;"
    run = compiled(mpc.export(tmp_path / "c", [1.0, 0.0]), tmp_path, change=applied)
    mpc.applied = 3.0
    states = np.random.default_rng(3).uniform(-1, 1, (8, 2))
    rows = [row(0.5 * x, v, 1.1, 0.1) for x, v in states]
    assert set(alike(mpc, run(rows), rows)) == {"solved"}


def test_delay_counts_in_the_problem_time(tmp_path):
    model = Model("swing")
    angle, acts = model.state("place", unit="rad"), model.state("acts")
    torque = model.control("double", lower=-3, upper=3)
    model.rates(place=acts + 0.5 * ca.sin(3 * model.time), acts=300 * (torque - acts))  # stiff
    cost = angle**2 + 0.1 * torque**2
    mpc = MPC(stated(model, integral=cost, method=Collocation(3)), delay=2)
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
    changed = (
        "if (inputs.mass == 1.2) controller.limits.cart_speed_lower = -0.3,"
        " controller.limits.double_upper = 2.0, controller.limits.moves_of_double_lower = -1.5;"
    )
    run = compiled(mpc.export(tmp_path / "c", [0.8, 0.0]), tmp_path, change=changed)
    rows = [row(0.8 - 0.02 * k, -0.1, 1.0 if k < 3 else 1.2) for k in range(6)]
    lines = run(rows)
    assert set(alike(mpc, lines[:3], rows[:3])) == {"solved"}
    mpc.limits({"cart speed": (-0.3, 1.5), "double": (-8, 2), "moves of double": (-1.5, 3.5)})
    assert set(alike(mpc, lines[3:], rows[3:])) == {"solved"}


@pytest.mark.parametrize("robust", [False, True])
def test_limits_follow_parameters_in_c(robust, tmp_path):
    model = Model("cart")
    top, fast = model.parameter("top", 1.0), model.parameter("fast", [2.0, 1.0])
    place, speed = model.state("place"), model.state("speed", upper=fast[0], scale=3.0)
    force = model.control("double", lower=-top, upper=fast[1] * top, scale=7.0)
    model.rates(place=speed, speed=force / model.parameter("mass", 1.0))
    ocp = stated(model, integral=place**2 + 0.01 * force**2)
    both = {"a": {"mass": 1.0}, "b": {"mass": 1.5, "fast": [2, 0.4]}}  # whose mass is no input
    mpc = MPC(Scenarios(ocp, both) if robust else ocp, default=0)
    changed = "if (inputs.top == 9) controller.limits.double_upper = 0.1;"
    written = mpc.export(tmp_path / "c", [1, 0], "cart")
    run = compiled(written, tmp_path, "A_PLACE" if robust else "PLACE", changed)
    first, later = [(0, 1, 2, 1), (0, 0.5, 2, 1)], [(0, 2, 2, 3), (0.4, 3, 0.2, 1)]
    later += [(np.nan, 3, 0.2, 1), (0, 9, 2, 1)]  # speed, top, fast
    states = [(1, *values) for values in first] + [(-1, *values) for values in later]
    lines = run([[500, *values, *([] if robust else [1.0])] for values in states])
    for (x, v, limit, *own), line in zip(states, lines, strict=True):
        mpc.limits(double=(-9, 0.1) if limit == 9 else None)
        step = mpc.step([x, v], top=limit, **({"a": {"fast": own}} if robust else {"fast": own}))
        assert STATUS[int(line[0])] == step.status
        assert line[2] == pytest.approx(step["double"], abs=1e-5)


def test_step_keeps_its_deadline_by_a_clock(tmp_path):
    mpc = MPC(cart(), deadline=0.05, default=0.0)
    clock = "controller.in.now = controller.in.max_time == 0.05 ? ticks : NULL;"
    run = compiled(mpc.export(tmp_path / "c", [0.8, 0.0]), tmp_path, change=clock)
    (line,) = run([row(0.5, 0.3)])
    assert line[:2].tolist() == [4, -1]  # one look at the clock later it is over


def test_folder_tells_names_and_memory(tmp_path):
    written = MPC(cart(), delay=0.15).export(tmp_path, [1.0, 0.0])
    assert (written.name, "the_cart_control.c" in written.files) == ("the_cart", True)
    readme = (tmp_path / "README.md").read_text()
    for name in ("inputs.cart_speed", "inputs.goal", "outputs.control_double", "the_cart_step("):
        assert name in readme
    probe = tmp_path / "probe.c"
    probe.write_text(
        '#include <stdio.h>\n#include "the_cart_control.h"\n'
        'int main(void) { printf("%zu", sizeof(the_cart_controller)); return 0; }\n'
    )
    compiler = find_compiler()
    subprocess.run([*compiler.command, "-I.", "probe.c", "-o", "probe"], cwd=tmp_path, check=True)
    assert int(subprocess.check_output([tmp_path / "probe"])) == written.controller
    compared = compare(written)
    assert compared.difference <= 1e-9
    assert compared.solved == (11, 11)
    ocp = cart()  # a plain export into the same folder leaves no controller there
    ocp.solver.export(tmp_path, "the_cart", **ocp.numbers([1.0, 0.0]).arguments)
    assert not (tmp_path / "the_cart_control.c").exists()


def cross_compiler(name, folder):
    if name == "arm-none-eabi-gcc":
        flags = re.search(r'FLAGS_INIT "(-mcpu.*)"', (folder / "cortex-m7.cmake").read_text())[1]
        return [name, *flags.split()] if shutil.which(name) else None
    zig = importlib.util.find_spec("ziglang")
    if zig is None:
        return None
    headers = Path(zig.submodule_search_locations[0]) / "lib" / "libc" / "include"
    command = [sys.executable, "-m", "ziglang", "cc", "-target", "thumb-freestanding-eabihf"]
    command += ["-mcpu=cortex_m7+fp_armv8d16", "-isystem", str(headers / "arm-linux-musl")]
    return [*command, "-isystem", str(headers / "generic-musl")]


@pytest.mark.parametrize("name", ["ziglang", "arm-none-eabi-gcc"])
def test_controller_compiles_for_a_cortex_m7(tmp_path, name):
    written = MPC(cart(), delay=0.15).export(tmp_path, [1.0, 0.0])
    compiler = cross_compiler(name, tmp_path)
    if compiler is None:
        pytest.skip(f"there is no {name}")
    for file in [f for f in written.files if f.startswith("the_cart") and f.endswith(".c")]:
        done = ended([*compiler, *STRICT, "-c", file, "-o", f"{file[:-2]}.o"], cwd=tmp_path)
        assert not done.returncode, done.stderr
    step = (tmp_path / "the_cart_control.o").read_bytes()
    assert re.search(rb"cortex-m7|7E-M", step)  # as clang and gcc name it
    assert b"__aeabi_dmul" not in step  # products in double precision by the processor itself


def test_problem_alone_is_exported_by_name(tmp_path):
    ocp, before = cart(duration=Free(1.0, 0.5, 2.0)), 0.0
    ocp.final(place=0)
    run = compiled(ocp.export(tmp_path / "c", [0.8, 0.0]), tmp_path)
    for line, x in zip(run([row(0.8, 0.0), row(0.6, 0.0)]), (0.8, 0.6), strict=True):
        solution = ocp.solve([x, 0.0], double_previous=before)
        before = solution["double"][0]
        assert (line[0], line[2]) == (0, pytest.approx(before, abs=5e-5))
        np.testing.assert_allclose(line[3:], solution["place"], atol=1e-5)


def test_bad_exports_are_refused(tmp_path):
    model = Model("algebraic")
    x, z = model.state("x"), model.algebraic("z")
    model.rates(x=z + model.control("u"))
    model.equations(z=z + x)
    held = stated(model, {"x": 1}, integral=x**2, method=Collocation(2))
    loose, free = cart(), cart(duration=Free(1.0, 0.5, 2.0))
    del loose.fixed["place"]
    twice = Model("twice")
    twice.rates({"a b": twice.state("a b"), "a_b": twice.state("a_b") + twice.control("u")})
    (file := tmp_path / "file").write_text("")
    assert_refused(
        (lambda: MPC(held, delay=1).export(tmp_path), "algebraic has algebraic"),
        (lambda: MPC(cart(), period=0.2).export(tmp_path), r"period is 0\.2, an interval 0\.1"),
        (lambda: MPC(free).export(tmp_path), "free duration or uneven intervals"),
        (lambda: loose.export(tmp_path), "leaves place free at the start"),
        (lambda: MPC(stated(twice, end=0)).export(tmp_path), "'a_b' and 'a b' are both 'a_b'"),
        (lambda: cart().export(file, [0.1, 0]), "folder must be a folder, but .* is a file"),
        (lambda: MPC(cart()).export(tmp_path, x0=[0.1, 0]), "is x=, not x0="),
        (lambda: MPC(cart()).export(tmp_path, [0.5, 0.0], "n" * 300), "of 300 characters"),
    )


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
def test_command_exports_a_controller(of, drag, tmp_path, capsys):
    file, folder = tmp_path / "lift.py", tmp_path / "c"
    file.write_text(PLANT)
    assert main(["export", f"{file}{of}", "--out", str(folder), "--warm-only"]) == 0
    output = capsys.readouterr().out
    assert "the warm mode alone" in output
    assert "solved 11 of 11" in output or of == ":ocp"
    assert f".drag = {drag}" in (folder / "lift_control.c").read_text()


def test_command_names_what_an_export_lacks(tmp_path, capsys):
    file, folder = tmp_path / "lift.py", tmp_path / "new" / "deep"
    lacking = PLANT.replace('drag = model.parameter("drag", 0.5)', 'drag = model.reference("drag")')
    for text, part, words in (
        (PLANT.replace("[0.5]", "[4.0]"), "heavy", "4 m at the start, 1 m above its limit 3 m"),
        (lacking, "mpc", "'drag'; give it as drag="),
    ):
        file.write_text(text)
        assert main(["export", f"{file}:{part}", "--out", str(folder)]) == 2
        assert words in capsys.readouterr().err
    assert not folder.parent.exists()


HOSTILE = ("*/ int evil; /*", "/*/", "m*/s\n#error", "\\", "??/", "/* \u2028*/")


@pytest.mark.parametrize("text", HOSTILE)
def test_text_of_users_stays_in_comments(text, tmp_path):
    model = Model(text, time_unit=text)
    x, u = model.state(f"{text} x", unit=text), model.control(f"{text} u", unit=text)
    model.rates({f"{text} x": u})
    ocp = stated(model, integral=x**2, intervals=2, name=text)
    ocp.minimize(text, integral=u**2)
    ocp.path(f"{text} row", x, upper=1, unit=text)
    MPC(ocp).export(tmp_path, [0.5], "mine", steps=1)
    checking = [*find_compiler().command, *STRICT, "-fsyntax-only", f"-I{tmp_path}"]
    done = ended([*checking, *tmp_path.glob("mine*.c")])
    assert done.returncode == 0, done.stderr
    code = re.sub(r"/\*.*?\*/", "", (tmp_path / "mine_control.h").read_text("utf-8"), flags=re.S)
    assert "int evil" not in code
