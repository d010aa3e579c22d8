"""The solver object of CasADi's calling convention: numbers quickly, all else as a Function."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property, wraps
from typing import TYPE_CHECKING, Any, overload

import casadi as ca
import numpy as np

from casadi_hybrid.problem.arguments import by_block
from casadi_hybrid.problem.evaluator import evaluating_until
from casadi_hybrid.solver.nlpsol.function import callback, defaults_of, make_function, shapes_of
from casadi_hybrid.solver.nlpsol.runner import Runner, SolveError
from casadi_hybrid.solver.nlpsol.stats import LISTED, stats_of
from casadi_hybrid.solver.options.convention import (
    INPUTS,
    OUTPUTS,
    check_names,
    solves_in,
    symbols_of,
)
from casadi_hybrid.solver.options.options import NlpOptions
from casadi_hybrid.utils.arrays import changed
from casadi_hybrid.utils.errors import InputError
from casadi_hybrid.utils.inputs import count, positive
from casadi_hybrid.utils.late import LateModule

if TYPE_CHECKING:
    from pathlib import Path

    from casadi_hybrid.core.export.export import Export
    from casadi_hybrid.solver.nlpsol import batch as batches
    from casadi_hybrid.solver.nlpsol import oracle as oracles
    from casadi_hybrid.solver.nlpsol import text as stored
    from casadi_hybrid.solver.result import Result
else:
    batches = LateModule("casadi_hybrid.solver.nlpsol.batch")
    oracles = LateModule("casadi_hybrid.solver.nlpsol.oracle")
    stored = LateModule("casadi_hybrid.solver.nlpsol.text")

_BLOCKS = {"x0": "x", "lam_x0": "x", "lam_g0": "c"}
"""Whose blocks a mapping names, where it is not the last letter of the argument."""
_SOLVING = 0.9
"""Part of the time of a call in which steps may begin; the rest is for the answer."""


def _itself(made: Any, _memo: Any = None) -> Any:
    return made


class NlpSolver(ca.Function):  # type: ignore[misc]
    """A nonlinear program ready to be solved for any start, parameters and bounds.

    Made by :func:`~casadi_hybrid.nlpsol`, and a ``ca.Function`` as what ``ca.nlpsol`` makes. Call
    it with CasADi's arguments: with numbers it solves, with symbols it becomes part of a graph,
    which has derivatives with respect to p and the bounds, of any order while the active set stays
    the same (:mod:`casadi_hybrid.solver.nlpsol.derivatives`). Matrices with k times as many
    columns are k solves (see also :meth:`batch`), and ``map``, ``mapaccum`` and ``factory`` work as
    of any Function.

    It can be pickled and copied; :meth:`save` and :meth:`serialize` are pickles too, in a form that
    ``ca.Function`` reads as well. CasADi cannot write it as C: :meth:`generate` is refused, no
    compiler takes the code of a graph around it, and ``jit`` raises. :meth:`export` is available.

    In a graph and in a map solves run without Python's lock, so that ``map(N, "thread")`` is as
    parallel as there are cores. They take turns where Python is called: with an
    ``iteration_callback``, ``log`` or ``error_on_fail``, and for functions that run Python. Ctrl-C
    ends a solve in a graph; for those that a map has on other threads it waits.

    Several threads may call one object at once: each call has its own evaluators, and
    :meth:`stats`, :attr:`result` and :meth:`explain` speak of the last call of the asking thread
    (of any thread, where the asking one has made none).

    Once it is used as more than numbers in, numbers out, what is behind the Function stays in
    memory until the process ends: a graph built from it may outlive it.
    """

    # ``ca.Function.__init__`` is not called: ``this`` makes the object of CasADi when needed.
    def __init__(self, runner: Runner) -> None:
        self._runner, self._name, self._problem = runner, runner.name, runner.problem

    def name(self) -> str:
        """The name given to it."""
        return self._name

    def class_name(self) -> str:
        """``"NlpSolver"``."""
        return "NlpSolver"

    @cached_property
    def this(self) -> Any:
        """CasADi's own object, by which its C++ code knows a Function; made at the first use."""
        runner = self._runner
        solved = callback(self._name, self._problem, runner.evaluate, runner.pool_for_graphs())
        self._function = make_function(self._name, self._problem, solved)
        return self._function.this

    @overload
    def __call__(self, **named: Any) -> dict[str, ca.DM]: ...

    @overload
    def __call__(self, x0: Any, /, *others: Any) -> tuple[ca.DM, ...]: ...

    def __call__(
        self,
        *in_order: Any,
        x0: Any = None,
        p: Any = None,
        lbx: Any = None,
        ubx: Any = None,
        lbg: Any = None,
        ubg: Any = None,
        lam_x0: Any = None,
        lam_g0: Any = None,
        warm_start: Result | None = None,
        **unknown: Any,
    ) -> Any:
        """Solve min f(x, p) s.t. lbg ≤ g(x, p) ≤ ubg, lbx ≤ x ≤ ubx, or put that into a graph.

        With symbols among the arguments symbols come back. With matrices of k columns for one (or k
        times those of a matrix) there are k solves, and the answers stand side by side. A single
        number stands for all entries, as in CasADi. What is left out has the default of the
        problem; that of a dictionary is CasADi's: no bounds, and zeros.

        Args:
            *in_order: all of :meth:`name_in` by position, as CasADi takes them; then a tuple comes
                back.
            x0: start, 0 by default; moved inside its bounds where it is not.
            p: parameter values.
            lbx, ubx, lbg, ubg: bounds; equal ones fix a variable or make an equation.
            lam_x0, lam_g0: multipliers of a solution nearby, 0 by default. Where any is not zero,
                the active set they name is tried first, by Newton steps from x0 as it is (a warm
                start); where that does not solve the problem, the cold barrier iteration runs,
                which starts from a least-squares estimate of its own.
            warm_start: the :attr:`result` of a solve nearby, of this solver or of one of the same
                size. It gives x0, lam_x0 and lam_g0 where they are not given, and the working set
                to try first. Parameters and bounds are those of this call. For a receding
                horizon shift x and the multipliers yourself and give those: which entries belong
                to which stage only you know.
            **unknown: refused.

        Returns:
            ``x``, ``f``, ``g`` at the best point found; ``lam_x`` and ``lam_g`` of
            L = f + lam_gᵀg + lam_xᵀx, positive at an active upper bound; ``lam_p`` = −∂L/∂p,
            CasADi's sign. All are ``DM``. A solve that fails returns its best point too; ask
            :meth:`stats` or :attr:`result`.

        Raises:
            InputError: for a bad argument, before any evaluation.
            SolveError: where the solve fails and ``error_on_fail`` is set.
        """
        if not (in_order or unknown):
            run = self._runner.quick((x0, p, lbx, ubx, lbg, ubg, lam_x0, lam_g0), warm_start)
            if run is not None:
                return self._runner.returned(run)
        values = x0, p, lbx, ubx, lbg, ubg, lam_x0, lam_g0
        given = {label: symbols_of(v) for label, v in zip(INPUTS, values, strict=True)}
        check_names(unknown, ("warm_start",))
        if in_order:
            if any(value is not None for value in given.values()):
                raise InputError("give all arguments by position, or all by name")
            return tuple(self.call(in_order))
        if any(isinstance(value, ca.MX | ca.SX) for value in given.values()):
            if warm_start is not None:
                raise InputError("warm_start is for numbers; give x0, lam_x0 and lam_g0")
            return self._in_graph(given)
        shapes = shapes_of(self._problem)
        if any(solves_in(value, shapes[label]) > 1 for label, value in given.items()):
            batch = batches.solve_many(self._runner, given, warm_start)
            # What runs on threads has no callback, so nothing was raised where there is a solution.
            failed = np.flatnonzero(~batch.success).tolist()
            for k in failed if self._runner.in_threads else range(len(batch)):
                self._runner.complain(batch.run(k))
            return batch.outputs()
        return self._runner.returned(self._runner.run(given, warm_start))

    def within(
        self, seconds: float = np.inf, iterations: int | None = None, **given: Any
    ) -> Result:
        """Solve under limits of this call, and return the best point until then.

        No evaluation of the problem's functions begins when the time is over. lam_p is not
        computed, and nothing that a function of the problem raises comes out: the result says so.

        Args:
            seconds: of wall-clock time from the call on.
            iterations: at most so many; those of the options by default.
            **given: CasADi's arguments x0, p, lbx, ubx, lbg, ubg, lam_x0, lam_g0, by name.

        Raises:
            InputError: for a bad argument, before any evaluation.
            SolveError: where no function was evaluated in time; its result is None.
        """
        began, runner, known = time.perf_counter(), self._runner, self._runner.limits
        if seconds != np.inf:
            positive(seconds, "seconds")
        steps = known.max_iter if iterations is None else count(iterations, "iterations")
        check_names(given)
        most = min(known.max_time, seconds * _SOLVING)
        limits = changed(known, max_time=most, max_iter=min(steps, known.max_iter))
        run = runner.quick([given.get(name) for name in INPUTS], None, limits)
        if run is None:
            with evaluating_until(began + seconds):
                run = runner.run(given, None, limits)
        runner.note(run)
        if isinstance(run.raised, KeyboardInterrupt):
            raise run.raised
        if run.late and not run.result.evaluations["first"]:
            raise SolveError(
                f"{self._name} evaluated no function of the problem within {seconds:g} s, so "
                "there is no point. Give it more time; a first solve without a limit makes "
                "what all need",
                None,
            )
        return run.result

    def batch(
        self,
        *,
        warm_start: Result | Sequence[Result | None] | None = None,
        threads: int | None = None,
        **given: Any,
    ) -> batches.Batch:
        """Solve many times: an argument has a column for each solve, or one for all of them.

        They run over threads at once where the engine in C does them, warm or cold, else one by
        one. Each has the numbers, to the last bit, that it has alone; one that fails, or whose
        functions raise, harms no other.

        Args:
            warm_start: the result of a solve nearby for all, or a list with one for each (None: for
                that one there is none). See :meth:`__call__`.
            threads: at most so many; by default as many as the process may use cores.
            **given: CasADi's arguments x0, p, lbx, ubx, lbg, ubg, lam_x0, lam_g0, by name.

        Returns:
            x, f, g, lam_x, lam_g and lam_p in columns, ``success``, and the result of each solve.
            :attr:`result` and :meth:`stats` speak of the last one.

        Raises:
            InputError: for bad numbers of any solve, before the first.

        Example:
            >>> import casadi as ca
            >>> from casadi_hybrid import nlpsol
            >>> x, p = ca.SX.sym("x", 2), ca.SX.sym("p")
            >>> nlp = {"x": x, "p": p, "f": ca.sumsqr(x), "g": x[0] + x[1] - p}
            >>> found = nlpsol("solver", "hybrid", nlp).batch(p=[[1, 2, 4]], lbg=0, ubg=0)
            >>> found.x.round(6).tolist(), found.result(2).success
            ([[0.5, 1.0, 2.0], [0.5, 1.0, 2.0]], True)
        """
        check_names(given)
        for name, value in given.items():
            if isinstance(value, ca.SX | ca.MX):
                raise InputError(f"{name} is a symbol, and a batch is for numbers; see solver.map")
        if threads is not None:
            threads = count(threads, "threads", at_least=1)
        return batches.solve_many(self._runner, given, warm_start, threads)

    def call(self, arguments: Any, always_inline: bool = False, never_inline: bool = False) -> Any:
        """Solve as ``Function.call`` does: a dictionary or a list in, the same kind out.

        A list has the arguments in the order of :meth:`name_in`, and the answer that of
        :meth:`name_out`.

        Raises:
            InputError: for another kind, or a list of another length.
        """
        if isinstance(arguments, Mapping):
            return self(**arguments)
        if not isinstance(arguments, list | tuple) or len(arguments) != len(INPUTS):
            raise InputError(
                f"call needs a dictionary or a list of {', '.join(INPUTS)}, all {len(INPUTS)} of "
                "them; name the arguments to leave some out, as in solver(x0=…, ubg=…)"
            )
        found = self(**dict(zip(INPUTS, arguments, strict=True)))
        return [found[label] for label in OUTPUTS]

    def stats(self) -> dict[str, Any]:
        """Statistics of the last call under CasADi's keys.

        ``success`` is whether x is a KKT point within ``residual_tol``; ``stop_reason`` the name of
        a :class:`~casadi_hybrid.utils.status.StopReason`, ``point_status`` that of a
        :class:`~casadi_hybrid.utils.status.PointStatus`; ``return_status`` IPOPT's word nearest to
        both and ``unified_return_status`` CasADi's ``SOLVER_RET_*``; ``iterations`` lists by the
        fields of ``IterationRecord``, one entry for the start and one for each of ``iter_count``
        iterations. Changing the dictionary changes nothing here.
        A call that the engine solved in a graph is solved again for this, to the same bits; times
        are then those of the second solve.

        Raises:
            RuntimeError: before the first call.
        """
        return stats_of(self._runner.last())

    @property
    def result(self) -> Result:
        """The last call's result with residuals and both statuses.

        After an exception in a user's function, or Ctrl-C, the best point until then.

        Raises:
            RuntimeError: before the first call.
        """
        return self._runner.last().result

    def explain(self) -> str:
        """Say in sentences how the last call ended; see ``result.explain()``."""
        return self.result.explain()

    @property
    def options(self) -> NlpOptions:
        """The options, defaults included."""
        return self._runner.options

    def get_function(self, name: str | None = None) -> Any:
        """The functions of the problem by the names and signatures of CasADi's solvers.

        Args:
            name: ``"nlp"``, ``"nlp_f"``, ``"nlp_g"``, ``"nlp_fg"``, ``"nlp_grad_f"``,
                ``"nlp_jac_g"``, ``"nlp_hess_l"`` or ``"nlp_grad"``; without one the names of those
                that IPOPT's plugin has come back.

        Raises:
            InputError: for another name.
        """
        return list(LISTED) if name is None else self._of_problem[name]

    def has_function(self, name: str) -> bool:
        """True where :meth:`get_function` lists the name."""
        return name in LISTED

    def map(self, *arguments: Any) -> ca.Function:
        """``ca.Function.map``; what it makes can be pickled as the solver can.

        Of a solver, ``"inline"`` inlines nothing, as with CasADi's own: it is ``"unroll"``.
        """
        if len(arguments) > 1 and arguments[1] == "inline":
            arguments = (arguments[0], "unroll", *arguments[2:])
        return Made(self, "map", arguments)

    def mapaccum(self, *arguments: Any) -> ca.Function:
        """``ca.Function.mapaccum``; what it makes can be pickled as the solver can."""
        return Made(self, "mapaccum", arguments)

    def oracle(self) -> ca.Function:
        """(x, p) → (f, g)."""
        return self._of_problem["nlp"]

    def generate(self, *_file: Any, **_options: Any) -> str:
        """Refused: what CasADi would write does not run."""
        raise InputError("CasADi cannot write this solver as C; its export(folder) writes it whole")

    def generate_dependencies(self, fname: str, opts: Mapping[str, Any] | None = None) -> str:
        """Write the C code of the functions of :meth:`get_function` to a file; return its name."""
        generator = ca.CodeGenerator(fname, dict(opts or {}))
        for name in ("nlp", *LISTED):
            generator.add(self._of_problem[name])
        return str(generator.generate())

    def export(
        self,
        folder: str | Path,
        name: str | None = None,
        *,
        loop: Iterable[Mapping[str, Any]] = (),
        loops: bool | None = None,
        cold: bool = True,
        **arguments: Any,
    ) -> Export:
        """Write the solver as C99 that needs no library, for machines without Python.

        Written is the whole method: it gives the numbers and the verdicts that this solver gives.
        The solver is called here with the arguments; the solution is the start that is stored
        beside the code. ``print(compare(export))`` of
        :mod:`casadi_hybrid.core.export.compare` compiles it and compares its answers.

        Args:
            folder: where, made where it is missing; files of the same names are replaced, and so
                is the core of another version.
            name: what names begin with; the solver's by default.
            loop: solves to compare with Python, as changes of the arguments, each from the
                solution before. A generator may look at :attr:`result` for its next change.
            loops: whether what repeats, as stages do, is written once; by default where straight
                code is long.
            cold: whether the whole method is written; else the warm mode alone, Newton steps from
                the multipliers of a solution nearby, with less code and memory.
            **arguments: x0, p, lbx, ubx, lbg, ubg of the call. They decide the kinds of bounds
                (fixed, equation, inequality, none), which stay.

        Returns:
            What was written.

        Raises:
            InputError: for a bad argument, a solve that fails, a function that cannot be written.
            OSError: where the folder cannot be written to.
        """
        import pathlib  # noqa: PLC0415

        from casadi_hybrid.core.export.cases import gather  # noqa: PLC0415 - only for this
        from casadi_hybrid.core.export.export import check_name, check_problem, write  # noqa: PLC0415

        folder = pathlib.Path(folder)
        if folder.is_file():
            raise InputError(f"folder must be a folder, but {folder} is a file; name another")
        name = check_name(self._name if name is None else name)
        check_problem(self._problem)

        def solve(**given: Any) -> Result:
            self(**given)
            return self.result

        first, cases = gather(solve, arguments, loop, cold=cold)
        return write(self._problem, self.options.limits, cases, folder, name, loops, first)

    def serialize(self, options: Mapping[str, Any] | None = None) -> str:
        """The solver as text, a pickle in CasADi's form: for :meth:`deserialize`, and CasADi's.

        ``ca.Function.deserialize`` makes a Function of it that gives the same numbers, and can be
        part of graphs that CasADi itself writes down. It has no derivatives and no statistics, and
        needs Python with this package in the process and the library that the text names, one of
        this installation. :meth:`deserialize` gives back the whole solver, on any machine.

        Raises:
            InputError: where a function of the problem is Python code, as a ``ca.Callback`` is.
        """
        return str(stored.function_of(self._runner).serialize(dict(options or {})))

    @staticmethod
    def deserialize(text: str) -> NlpSolver:
        """The solver that :meth:`serialize` made text of. Take texts you trust: it is a pickle.

        Raises:
            InputError: for other text.
        """
        return NlpSolver(stored.runner_of(text))

    def save(self, fname: str, options: Mapping[str, Any] | None = None) -> None:
        """Write the solver to a file, for :meth:`load`, and CasADi's; see :meth:`serialize`."""
        stored.function_of(self._runner).save(fname, dict(options or {}))

    @staticmethod
    def load(fname: str) -> NlpSolver:
        """The solver that :meth:`save` wrote. Take files you trust: it is a pickle.

        Raises:
            InputError: for another file.
        """
        with open(fname, encoding="ascii", errors="replace") as file:
            return NlpSolver.deserialize(file.read())

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._runner,)

    __copy__ = __deepcopy__ = _itself  # nothing of it changes but its last result, as in CasADi

    __hash__ = object.__hash__  # CasADi's makes what is behind the Function

    def __str__(self) -> str:
        return str(self._signature).rpartition(" ")[0] + " NlpSolver"

    def __repr__(self) -> str:
        problem = self._problem
        sizes = f"n={problem.n}, m={problem.m}, parameters={problem.n_p}"
        return f"NlpSolver({self._name!r}, 'hybrid', {sizes})"

    @cached_property
    def _signature(self) -> ca.Function:
        """A Function of the same shapes and defaults that computes nothing."""
        shapes = shapes_of(self._problem)
        zeros = [ca.MX.zeros(*shapes[label]) for label in OUTPUTS]
        return make_function(self._name, self._problem, lambda _: zeros)

    @cached_property
    def _of_problem(self) -> oracles.ProblemFunctions:
        # The derivatives first and scalar operations then, where both were asked for.
        scalar = self.options.expand and self.options.postpone_expand
        return oracles.ProblemFunctions(self._problem, scalar=scalar)

    def _in_graph(self, given: dict[str, Any]) -> Any:
        """Call the Function with symbols; what is left out has the problem's default."""
        problem = self._problem
        for (label, value), known in zip(given.items(), defaults_of(problem), strict=True):
            if value is None or isinstance(value, Mapping):
                blocks = problem.blocks[_BLOCKS.get(label, label[-1])]
                numbers = by_block(value or {}, blocks, known, label, infinite=True)
                given[label] = ca.reshape(ca.DM(numbers), *shapes_of(problem)[label])
        return ca.Function.call(self, given)


def _asked(method: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(method)
    def ask(self: NlpSolver, *which: Any) -> Any:
        return method(self._signature, *which)

    return ask


# What a script asks of inputs and outputs is answered without a Function that could be in a graph.
for _label, _method in vars(ca.Function).items():
    if _label.endswith(("_in", "_out")):
        setattr(NlpSolver, _label, _asked(_method))


class Made(ca.Function):  # type: ignore[misc]
    """A Function that CasADi makes of a solver, made again where it is unpickled."""

    def __init__(self, solver: NlpSolver, how: str, arguments: tuple[Any, ...]) -> None:
        self._recipe = solver, how, arguments
        ca.Function.__init__(self, getattr(ca.Function, how)(solver, *arguments))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), self._recipe

    __copy__ = __deepcopy__ = _itself
