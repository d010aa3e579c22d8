"""Each scenario, copied alone, runs and says the truth; their models obey textbook equations."""

import ast
import os
import re
import runpy
import shutil
import sys

import casadi as ca
import gallery
import numpy as np
import pytest
from scipy.integrate import solve_ivp
from support.cases.pages import python_of
from support.cases.watched import ended
from support.paths import DOCS, ROOT

from casadi_hybrid.cli.running import scenario_summaries
from casadi_hybrid.control.solution.ocp import OptimalControl

FOLDER = ROOT / "scenarios"
NAMES = sorted(path.stem for path in FOLDER.glob("*.py") if path.stem != "gallery")
WRONG = """
import sys, casadi_hybrid.control as control
solve = control.OptimalControl.solve
def wrong(self, *arguments, **named):
    solution = solve(self, *arguments, **named)
    solution.x[:] += 1e-3
    return solution
control.OptimalControl.solve = wrong
import van_der_pol
sys.exit(0 if van_der_pol.main() else 1)
"""


def copied(name, folder):
    shutil.copy(FOLDER / f"{name}.py", folder)
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "MPLBACKEND": "agg"}
    return lambda *command: ended([sys.executable, *command], cwd=folder, env=environment)


def contents(name):
    return runpy.run_path(str(FOLDER / f"{name}.py"))


@pytest.mark.parametrize("name", NAMES)
def test_copy_in_empty_folder_is_accepted(name, tmp_path):
    done = copied(name, tmp_path)("-W", "error", f"{name}.py")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "ACCEPTED" in done.stdout
    pictures = [path.name for path in tmp_path.iterdir() if path.suffix == ".png"]
    assert pictures
    assert all(picture.startswith(name) for picture in pictures)


def test_wrong_answer_gives_exit_code_one(tmp_path):
    done = copied("van_der_pol", tmp_path)("-c", WRONG)
    assert done.returncode == 1
    assert "REJECTED" in done.stdout


def test_scenarios_are_short_and_import_little():
    allowed = {"casadi_hybrid", "casadi", "matplotlib", "numpy", *sys.stdlib_module_names}
    assert sorted(scenario_summaries(FOLDER)) == NAMES
    for name in NAMES:
        text = (FOLDER / f"{name}.py").read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Import):
                assert {alias.name.partition(".")[0] for alias in node.names} <= allowed, name
            elif isinstance(node, ast.ImportFrom):
                assert str(node.module).partition(".")[0] in allowed, name
        assert len(text.splitlines()) <= 100, name


def test_problem_is_importable_without_running():
    for name in ("van_der_pol", "pendulum"):
        assert isinstance(contents(name)["problem"](), OptimalControl)


def test_scenario_of_guide_is_accepted(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    names = {"__name__": "block"}
    exec(python_of("scenarios/README.md")[0], names)
    assert names["main"]()
    assert "ACCEPTED" in capsys.readouterr().out
    assert (tmp_path / "block.png").exists()


# The gallery of the site.


def test_gallery_shows_every_scenario_with_figures():
    text = (DOCS / "gallery.md").read_text(encoding="utf-8")
    assert text == gallery.page()
    sections = dict(re.findall(r"^## (\w+)$(.*?)(?=^## |\Z)", text, flags=re.M | re.S))
    assert sorted(sections) == sorted(gallery.NUMBERS) == sorted(gallery.stored_numbers()) == NAMES
    for section in sections.values():
        pictures = re.findall(r'(?:\]\(|src=")(gallery/[^)"]*)', section)
        assert pictures
        assert all((DOCS / picture).is_file() for picture in pictures)


def test_numbers_come_from_printed_text():
    text = "Solved in 7 iterations: chain (cost 61.2491)\nIPOPT from x0    x  [ok, 9 iterations]"
    assert gallery.numbers("chain", text) == ["7 iterations", "IPOPT 9", "cost 61.25"]
    with pytest.raises(ValueError, match="chain printed nothing like"):
        gallery.numbers("chain", "Solved in 7 iterations")


def test_pictures_of_repository_are_small():
    stored = [path for path in DOCS.rglob("*") if path.suffix in (".png", ".gif", ".svg")]
    assert sum(path.stat().st_size for path in stored) < 2e6


def test_failed_scenario_keeps_former_files(tmp_path, monkeypatch):
    (tmp_path / "block.py").write_text("raise SystemExit(1)\n")
    (tmp_path / "numbers.json").write_text("{}")
    monkeypatch.setattr(gallery, "SCENARIOS", tmp_path)
    monkeypatch.setattr(gallery, "PICTURES", tmp_path)
    assert not gallery.renew("block")
    assert (tmp_path / "numbers.json").read_text() == "{}"


def test_unknown_name_is_refused(capsys):
    with pytest.raises(SystemExit) as stop:
        gallery.main(["cart"])
    assert stop.value.code == 2
    assert "cart" in capsys.readouterr().err


# Models against equations written out with NumPy: x, u and the expected rates.


def cartpole(x, u, M=1.0, m=0.3, l=0.5, d=0.0):  # noqa: E741
    _, angle, v, rate = x
    sin, cos = np.sin(angle), np.cos(angle)
    mass = [[M + m, m * l * cos], [cos, l]]
    return [v, rate, *np.linalg.solve(mass, [u[0] - d * v + m * l * rate**2 * sin, -9.81 * sin])]


def quadrotor(x, u, m=0.6, J=0.01, drag=0.0):
    *_, angle, vx, vz, rate = x
    right = -u.sum() * np.sin(angle) - drag * (vx + 1.5)
    up = u.sum() * np.cos(angle) - m * 9.81 - drag * vz
    return [vx, vz, rate, right / m, up / m, 0.2 * (u[1] - u[0]) / J]


def tank(x, u):
    c, T, jacket = x
    reaction = 7.2e10 * np.exp(-8750 / T) * c
    heat = 350 - T + 5e4 / 239 * reaction + 5e4 / 23900 * (jacket - T)
    return [1 - c - reaction, heat, u[0]]


def levels(x, u):
    flow = 5e-5 * np.sqrt(2 * 9.81 * x)
    lost = 3e-6 * np.sqrt(2 * 9.81 * x[1])
    return np.array([u[0] - flow[0], flow[0] - flow[1] - lost, flow[1] - flow[2]]) / 0.0154


MODELS = {
    "cartpole": ("cart_pole", (), [], cartpole),
    "mpc_cartpole": ("cart_pole", (1.2, 0.33, 0.525, 0.3), [], cartpole),
    "quadrotor": ("vehicle", (), [], quadrotor),
    "mpc_quadrotor": ("vehicle", (0.65, 0.012, 0.2), [], quadrotor),
    "reactor": ("stirred_tank", (), [], tank),
    "robust_reactor": ("stirred_tank", (), [1, 1], tank),
    "tank_estimation": ("tanks", (), [3.0], levels),
}
"""The function that makes the model, its arguments, parameters, and the equations."""


@pytest.mark.parametrize("name", MODELS)
def test_model_obeys_its_equations(name):
    plant, arguments, p, law = MODELS[name]
    scenario = contents(name)
    model = scenario[plant](*arguments)
    rng = np.random.default_rng(0)
    sizes = [
        sum(signal.size for signal in model.signals[kind].values()) for kind in ("state", "control")
    ]
    for _ in range(3):
        x, u = (rng.uniform(0.1, 1.0, size) for size in sizes)
        if law is tank:
            x *= [1.0, 350.0, 320.0]
        rates = model.moves.rate(x, [], u, p, 0.0).full().ravel()
        np.testing.assert_allclose(rates, law(x, u, *arguments), rtol=1e-9, atol=1e-9)


def test_reactor_rests_at_unstable_set_point():
    scenario = contents("reactor")
    model, x = scenario["stirred_tank"](), ca.SX.sym("x", 3)
    slope = ca.Function("slope", [x], [ca.jacobian(model.moves.rate(x, [], 0, [], 0), x)])
    growth = {}
    for temperature in (320.0, 350.0):
        state = list(scenario["steady"](model, T=temperature, u=0).states.values())
        np.testing.assert_allclose(tank(state, [0.0]), 0.0, atol=1e-9)
        growth[temperature] = np.linalg.eigvals(slope(state).full()[:2, :2]).real.max()
    assert growth[320.0] < 0 < growth[350.0]


def test_chain_with_held_end_keeps_its_energy():
    model = contents("chain")["chain"]()
    x = np.append(np.linspace(0.1, 1.0, 12), np.linspace(-0.5, 0.5, 9))

    def energy(state):
        points, v = np.append(np.zeros(3), state[:12]).reshape(-1, 3), state[12:]
        stretch = np.linalg.norm(np.diff(points, axis=0), axis=1) - 0.033
        potential = 0.033 * 9.81 * points[1:-1, 2].sum() + 0.5 * stretch @ stretch
        return 0.5 * 0.033 * v @ v + potential

    def motion(_, state):
        return model.moves.rate(state, [], np.zeros(3), [], 0).full().ravel()

    end = solve_ivp(motion, (0, 0.5), x, rtol=1e-8, atol=1e-10).y[:, -1]
    assert energy(end) == pytest.approx(energy(x), abs=1e-6)


def test_slopes_of_references_are_their_velocities():
    lap, times, step = contents("mpc_quadrotor")["lap"], np.linspace(0.0, 4.0, 9), 1e-5
    slope = (lap(times + step)[:2] - lap(times - step)[:2]) / (2 * step)
    np.testing.assert_allclose(lap(times)[2:], slope, atol=1e-8)
