"""The solver object of CasADi's calling convention: a fast call for numbers, else a Function."""

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

# Blocks that a mapping names, if not those of the argument's last letter.
_BLOCKS = {"x0": "x", "lam_x0": "x", "lam_g0": "c"}
# Share of the time of a call in which steps may begin; the rest is for the answer.
_SOLVING = 0.9


def _itself(solver: Any, _memo: Any = None) -> Any:
    return solver


class NlpSolver(ca.Function):  # type: ignore[misc]
    """A nonlinear program ready to be solved for any start, parameters and bounds.

    Made by :func:`~casadi_hybrid.nlpsol`, and a ``ca.Function`` like a solver of ``ca.nlpsol``.
    Called with numbers it solves. Called with symbols it becomes part of a graph, which has
    derivatives with respect to p and the bounds, of any order while the active set stays the same
    (:mod:`casadi_hybrid.solver.nlpsol.derivatives`). Matrices with k times as many columns are k
    solves (see also :meth:`batch`); ``map``, ``mapaccum`` and ``factory`` work as usual.

    It can be pickled and copied; :meth:`save` and :meth:`serialize` are pickles too, in a form that
    ``ca.Function`` reads as well. CasADi cannot write it as C: :meth:`generate` is refused, no
    compiler takes the code of a graph around it, and ``jit`` raises. Use :meth:`export`.

    In a graph and in a map solves run without Python's lock, so ``map(N, "thread")`` uses all
    cores. Solves that call Python take turns: those with an ``iteration_callback``, ``log`` or
    ``error_on_fail``, or with functions in Python. Ctrl-C ends a solve in a graph, but waits for
    the solves of a map on other threads.

    Several threads may call one object at once. :meth:`stats`, :attr:`result` and :meth:`explain`
    report the last call of the asking thread, or of any thread if the asking one has made none.

    A solver that was used in a graph stays in memory until the process ends: the graph may outlive
    this object.
    """

    # ``ca.Function.__init__`` is not called: ``this`` makes the object of CasADi when needed.
    def __init__(self, runner: Runner) -> None:
        self._runner, self._name, self._problem = runner, runner.name, runner.problem

    def name(self) -> str:
        """Name of the solver."""
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
        """Solve min f(x, p) s.t. lbg ≤ g(x, p) ≤ ubg, lbx ≤ x ≤ ubx, or put the solve into a graph.

        With symbols among the arguments the outputs are symbols. Matrices of k columns for one (or
        k times those of a matrix) are k solves, with the answers side by side. A single number
        stands for all entries, as in CasADi. An omitted argument has the default of the problem;
        for a dictionary that is CasADi's: no bounds, and zeros.

        Args:
            *in_order: all of :meth:`name_in` by position; then a tuple is returned.
            x0: start, 0 by default; moved inside its bounds.
            p: parameter values.
            lbx, ubx, lbg, ubg: bounds; equal ones fix a variable or make an equation.
            lam_x0, lam_g0: multipliers of a solution nearby, 0 by default. If any is not zero, the
                active set they name is tried first, by Newton steps from x0 as it is (a warm
                start). If the warm start fails, the cold barrier iteration runs, from its own
                least-squares estimate of the multipliers.
            warm_start: the :attr:`result` of a solve nearby, of this solver or of one of the same
                size. It supplies x0, lam_x0 and lam_g0 if omitted, and the working set to try
                first. Parameters and bounds are those of this call. For a receding horizon shift x
                and the multipliers yourself: only you know which entries belong to which stage.
            **unknown: refused.

        Returns:
            ``x``, ``f``, ``g`` at the best point found; ``lam_x`` and ``lam_g`` of
            L = f + lam_gᵀg + lam_xᵀx, positive at an active upper bound; ``lam_p`` = −∂L/∂p,
            CasADi's sign. All are ``DM``. A failed solve returns its best point too; see
            :meth:`stats` or :attr:`result`.

        Raises:
            InputError: for a bad argument, before any evaluation.
            SolveError: if the solve fails and ``error_on_fail`` is set.
        """
        # The usual call, with numbers like those of the call before: no check is repeated.
        if not (in_order or unknown):
            run = self._runner.quick((x0, p, lbx, ubx, lbg, ubg, lam_x0, lam_g0), warm_start)
            if run is not None:
                return self._runner.returned(run)
        values = x0, p, lbx, ubx, lbg, ubg, lam_x0, lam_g0
        named = {label: symbols_of(v) for label, v in zip(INPUTS, values, strict=True)}
        check_names(unknown, ("warm_start",))
        # CasADi returns a tuple for arguments by position, a dictionary for those by name.
        if in_order:
            if any(value is not None for value in named.values()):
                raise InputError("give all arguments by position, or all by name")
            return tuple(self.call(in_order))
        if any(isinstance(value, ca.MX | ca.SX) for value in named.values()):
            if warm_start is not None:
                raise InputError("warm_start is for numbers; give x0, lam_x0 and lam_g0")
            return self._in_graph(named)
        shapes = shapes_of(self._problem)
        if any(solves_in(value, shapes[label]) > 1 for label, value in named.items()):
            batch = batches.solve_many(self._runner, named, warm_start)
            # A solve on a thread has no callback: only a failed one can have raised.
            failed = np.flatnonzero(~batch.success).tolist()
            for k in failed if self._runner.in_threads else range(len(batch)):
                self._runner.complain(batch.run(k))
            return batch.outputs()
        return self._runner.returned(self._runner.run(named, warm_start))

    def within(
        self, seconds: float = np.inf, iterations: int | None = None, **given: Any
    ) -> Result:
        """Solve under limits of this call, and return the best point within them.

        No evaluation of the problem's functions begins after the time. lam_p is not computed.
        Exceptions of the problem's functions are not raised: the result has them.

        Args:
            seconds: wall-clock time from the call on.
            iterations: limit of the steps; that of the options by default.
            **given: CasADi's arguments x0, p, lbx, ubx, lbg, ubg, lam_x0, lam_g0, by name.

        Raises:
            InputError: for a bad argument, before any evaluation.
            SolveError: if no function was evaluated in time; its result is None.
        """
        began, runner, defaults = time.perf_counter(), self._runner, self._runner.limits
        if seconds != np.inf:
            positive(seconds, "seconds")
        steps = defaults.max_iter if iterations is None else count(iterations, "iterations")
        check_names(given)
        # No step begins after this share; solves in Python begin no evaluation after all of it.
        max_time = min(defaults.max_time, seconds * _SOLVING)
        limits = changed(defaults, max_time=max_time, max_iter=min(steps, defaults.max_iter))
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

        Solves by C run on threads, warm or cold; others one by one. Each has the values, to the
        last bit, that it has alone. A failed solve or an exception harms no other.

        Args:
            warm_start: the result of a solve nearby for all, or a list with one or None for each.
                See :meth:`__call__`.
            threads: largest number of threads; by default the cores that the process may use.
            **given: CasADi's arguments x0, p, lbx, ubx, lbg, ubg, lam_x0, lam_g0, by name.

        Returns:
            x, f, g, lam_x, lam_g and lam_p in columns, ``success``, and the result of each solve.
            :attr:`result` and :meth:`stats` are those of the last one.

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
        outputs = self(**dict(zip(INPUTS, arguments, strict=True)))
        return [outputs[label] for label in OUTPUTS]

    def stats(self) -> dict[str, Any]:
        """Statistics of the last call under CasADi's keys.

        ``success`` is True for a KKT point within ``residual_tol``. ``stop_reason`` is the name of
        a :class:`~casadi_hybrid.utils.status.StopReason`, ``point_status`` that of a
        :class:`~casadi_hybrid.utils.status.PointStatus`, ``return_status`` IPOPT's nearest word and
        ``unified_return_status`` CasADi's ``SOLVER_RET_*``. ``iterations`` has lists by the fields
        of ``IterationRecord``, one entry for the start and one for each of ``iter_count``
        iterations. A call in a graph is solved again, to the same bits; times are then those of the
        second solve.

        Raises:
            RuntimeError: before the first call.
        """
        return stats_of(self._runner.last())

    @property
    def result(self) -> Result:
        """The last call's result with residuals and both statuses.

        After an exception in a user's function, or Ctrl-C, it has the best point until then.

        Raises:
            RuntimeError: before the first call.
        """
        return self._runner.last().result

    def explain(self) -> str:
        """Explain the end of the last call in sentences; see ``result.explain()``."""
        return self.result.explain()

    @property
    def options(self) -> NlpOptions:
        """The options, defaults included."""
        return self._runner.options

    def get_function(self, name: str | None = None) -> Any:
        """Return a function of the problem by the names and signatures of CasADi's solvers.

        Args:
            name: ``"nlp"``, ``"nlp_f"``, ``"nlp_g"``, ``"nlp_fg"``, ``"nlp_grad_f"``,
                ``"nlp_jac_g"``, ``"nlp_hess_l"`` or ``"nlp_grad"``; without a name the list of
                the names that IPOPT's plugin has.

        Raises:
            InputError: for another name.
        """
        return list(LISTED) if name is None else self._of_problem[name]

    def has_function(self, name: str) -> bool:
        """Return True if :meth:`get_function` lists the name."""
        return name in LISTED

    def map(self, *arguments: Any) -> ca.Function:
        """``ca.Function.map``; the map can be pickled as the solver can.

        ``"inline"`` is ``"unroll"``, as with CasADi's own solvers, which are not inlined.
        """
        if len(arguments) > 1 and arguments[1] == "inline":
            arguments = (arguments[0], "unroll", *arguments[2:])
        return Made(self, "map", arguments)

    def mapaccum(self, *arguments: Any) -> ca.Function:
        """``ca.Function.mapaccum``; the Function can be pickled as the solver can."""
        return Made(self, "mapaccum", arguments)

    def oracle(self) -> ca.Function:
        """(x, p) → (f, g)."""
        return self._of_problem["nlp"]

    def generate(self, *_file: Any, **_options: Any) -> str:
        """Refused: CasADi's code of a solver does not run."""
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

        The code is the whole method, with the values and verdicts of this solver. The solver is
        called with the arguments; its solution is the start that is stored beside the code.
        ``print(compare(export))`` of :mod:`casadi_hybrid.core.export.compare` compiles the code and
        compares its answers.

        Args:
            folder: folder to write, made if missing; files of the same names are replaced, and so
                is the core of another version.
            name: prefix of the names in C; the solver's name by default.
            loop: solves to compare with Python, as changes of the arguments, each from the
                previous solution. A generator may read :attr:`result` for its next change.
            loops: True to write repeated parts, such as stages, once; by default if straight code
                is long.
            cold: True for the whole method; False for the warm mode alone, Newton steps from the
                multipliers of a solution nearby, with less code and memory.
            **arguments: x0, p, lbx, ubx, lbg, ubg of the call. They decide the kinds of bounds
                (fixed, equation, inequality, none), which stay.

        Returns:
            Record of the written files.

        Raises:
            InputError: for a bad argument, a failed solve, or a function that cannot be written.
            OSError: if the folder cannot be written to.
        """
        import pathlib  # noqa: PLC0415

        from casadi_hybrid.core.export.cases import gather  # noqa: PLC0415 - only for this
        from casadi_hybrid.core.export.export import check_name, check_problem, write  # noqa: PLC0415

        folder = pathlib.Path(folder)
        if folder.is_file():
            raise InputError(f"folder must be a folder, but {folder} is a file; name another")
        name = check_name(self._name if name is None else name)
        check_problem(self._problem)

        def solve(**changed_arguments: Any) -> Result:
            self(**changed_arguments)
            return self.result

        first, cases = gather(solve, arguments, loop, cold=cold)
        return write(self._problem, self.options.limits, cases, folder, name, loops, first)

    def serialize(self, options: Mapping[str, Any] | None = None) -> str:
        """Return the solver as text, a pickle in CasADi's form, for both ``deserialize``.

        :meth:`deserialize` returns the whole solver, on any machine. ``ca.Function.deserialize``
        returns a Function with the same outputs, which CasADi can write down within graphs. The
        Function has no derivatives and no statistics, and needs this package in the process and
        the library of this installation that the text names.

        Raises:
            InputError: if a function of the problem is Python code, as a ``ca.Callback`` is.
        """
        return str(stored.function_of(self._runner).serialize(dict(options or {})))

    @staticmethod
    def deserialize(text: str) -> NlpSolver:
        """Return the solver of a text by :meth:`serialize`. Take texts you trust: it is a pickle.

        Raises:
            InputError: for other text.
        """
        return NlpSolver(stored.runner_of(text))

    def save(self, fname: str, options: Mapping[str, Any] | None = None) -> None:
        """Write the solver to a file, for :meth:`load`, and CasADi's; see :meth:`serialize`."""
        stored.function_of(self._runner).save(fname, dict(options or {}))

    @staticmethod
    def load(fname: str) -> NlpSolver:
        """Return the solver that :meth:`save` wrote. Take files you trust: it is a pickle.

        Raises:
            InputError: for another file.
        """
        with open(fname, encoding="ascii", errors="replace") as file:
            return NlpSolver.deserialize(file.read())

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._runner,)

    __copy__ = __deepcopy__ = _itself  # only its last result changes, as in CasADi

    __hash__ = object.__hash__  # CasADi's would make the Function

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
        # With both options derivatives are taken before the expansion to scalar operations.
        scalar = self.options.expand and self.options.postpone_expand
        return oracles.ProblemFunctions(self._problem, scalar=scalar)

    def _in_graph(self, arguments: dict[str, Any]) -> Any:
        """Call the Function with symbols; an omitted argument has the problem's default."""
        problem = self._problem
        for (label, value), default in zip(arguments.items(), defaults_of(problem), strict=True):
            if value is None or isinstance(value, Mapping):
                blocks = problem.blocks[_BLOCKS.get(label, label[-1])]
                numbers = by_block(value or {}, blocks, default, label, infinite=True)
                arguments[label] = ca.reshape(ca.DM(numbers), *shapes_of(problem)[label])
        return ca.Function.call(self, arguments)


def _of_signature(method: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(method)
    def describe(self: NlpSolver, *arguments: Any) -> Any:
        return method(self._signature, *arguments)

    return describe


# Methods as size1_in and name_out describe the signature alone. CasADi's own would make the
# Function, whose callback stays in memory until the process ends; there are about 50 of them.
for _name, _method in vars(ca.Function).items():
    if _name.endswith(("_in", "_out")):
        setattr(NlpSolver, _name, _of_signature(_method))


class Made(ca.Function):  # type: ignore[misc]
    """A Function that CasADi makes of a solver; unpickling makes it again."""

    def __init__(self, solver: NlpSolver, how: str, arguments: tuple[Any, ...]) -> None:
        self._recipe = solver, how, arguments
        ca.Function.__init__(self, getattr(ca.Function, how)(solver, *arguments))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), self._recipe

    __copy__ = __deepcopy__ = _itself
