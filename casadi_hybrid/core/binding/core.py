"""The core for one problem and thread: memory of a solve, functions, and ``hybrid_solve``."""

from __future__ import annotations

import ctypes as ct
import threading
from collections.abc import Callable, Generator, Iterable
from ctypes import c_int, c_void_p
from functools import cached_property
from itertools import accumulate, pairwise, starmap
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary, ref

import casadi as ca
import numpy as np

from casadi_hybrid.core.binding.externals import buffer_of, function_of, shapes_of
from casadi_hybrid.core.binding.functions import PythonFunctions, copied
from casadi_hybrid.core.binding.plan import Plan, options_of, plan_of, sizes_by
from casadi_hybrid.core.binding.view import View
from casadi_hybrid.core.evaluation.compiled import (
    ARRIVED,
    COMPILED,
    INTERPRETED,
    LISTED_AFTER,
    SMALL,
    STAGED,
    Compiled,
    forms_of,
)
from casadi_hybrid.core.header import C
from casadi_hybrid.core.library import engine
from casadi_hybrid.problem.arguments import Numbers
from casadi_hybrid.problem.bounds import Bounds
from casadi_hybrid.problem.point.limits import Limits
from casadi_hybrid.problem.point.working_set import WorkingSet
from casadi_hybrid.problem.problem import Problem
from casadi_hybrid.utils.arrays import address, memory_of
from casadi_hybrid.utils.casadi_internals import MatrixData, address_of, is_known, trigger

if TYPE_CHECKING:
    from casadi_hybrid.core.evaluation.forms import Code, Lists

INPUTS = ("x0", "p", "lbx", "ubx", "lbg", "ubg", "lam_x0", "lam_g0")
OUTPUTS = ("x", "f", "g", "lam_x", "lam_g", "lam_p")
STARTS = ("x0", "lam_x0", "lam_g0")
"""A solution does not depend on them while they lead to it."""
MORE = ("gradient", "J", "gradient0", "J0", "x_start", "step", "x_undefined", "last")
"""Answers of the core beside CasADi's outputs: first derivatives at x and at the start, the start,
the last step, a point where a function was not defined, and the last iterate at a limit."""
REFUSED = C.HYBRID_OTHER_SHAPE, C.HYBRID_BAD_NUMBERS, C.HYBRID_OTHER_PATTERN
"""How a solve ends that was not begun."""
ELSE, MATRIX = object(), object()
"""What no argument is: see :attr:`Core.held`."""
_ROWS = 256  # of iterates that there is room for at first
_KINDS = 4  # of bounds between which a solver may change without anything to be made
_MOST = 2**31 - 1  # of C's int

Look = Callable[[View], bool]
_Look = ct.CFUNCTYPE(c_int, c_void_p, ct.POINTER(C.hybrid_view))
_Ask = ct.CFUNCTYPE(c_int, c_void_p)


class Core:
    """The memory of one solve at a time, for one plan, and the whole method on it.

    Args:
        library: the core in C.
        problem: what is solved.
        plan: of the problem, for bounds of certain kinds.
        limits: tolerances and limits of the solves.
        evaluate: :func:`trigger`; None where functions may raise, and Python calls them.
        repeated: whether many solves are to come; else a warm start shows it, or how often the
            functions were evaluated.

    Attributes:
        plan, limits: as given.
        numbers: all numbers of a solve in one array; ``places`` says which part has which name,
            ``parts`` are views of these, by the names of :data:`INPUTS`, :data:`OUTPUTS` and
            :data:`MORE`; those of the inputs are ``ordered`` too.
        held: of each input the number that fills it, None for its default, :data:`MATRIX` where
            it is read from a ``ca.DM``, whose address is in ``matrices``, else :data:`ELSE`.
        answer: the ``hybrid_answer`` that C writes.
        rows: the numbers of the iterates, as many as ``observer.count``.
        data: the ``hybrid_adapter`` by which C calls the method and CasADi reads and writes.
        called: which functions are called, and why not compiled ones where they were asked for.
        awaited: the machine code that will serve as soon as it is there.
        sided: whether the last solve had a working set.
        python: the functions that run Python, where there are such.
        look: what is called with each iterate of a solve, None for nothing.
        busy: whether a solve is under way.
        halted: whether a solve is to end, asked every 0.1 s or so.
        raised: what ended the last solve; None where nothing did.
    """

    def __init__(
        self,
        library: Any,
        problem: Problem,
        plan: Plan,
        limits: Limits,
        evaluate: int | None,
        repeated: bool = False,
    ) -> None:
        data = plan.data
        self.plan, self.limits, self._problem = plan, limits, ref(problem)
        self._kept: list[Any] = []
        n, m, n_p, J = data.n_x, data.n_g, data.n_p, data.nnz_J
        sizes_in, sizes_out = (n, n_p, n, n, m, m, n, m), (n, 1, m, n, m, n_p)
        sizes = (*sizes_in, *sizes_out, n, J, n, J, n, n, n, 2 * n + m)
        ends = starmap(slice, pairwise([0, *accumulate(sizes)]))
        self.places = dict(zip(INPUTS + OUTPUTS + MORE, ends, strict=True))
        self.numbers = np.zeros(sum(sizes))
        self.parts = {name: self.numbers[place] for name, place in self.places.items()}
        base = address(self.numbers)
        at = {name: base + 8 * place.start for name, place in self.places.items()}
        self.ordered, self.held = [self.parts[name] for name in INPUTS], [ELSE] * len(INPUTS)
        self.shapes = [one.shape for one in self.ordered]
        written = set(OUTPUTS + MORE) - {"f", "lam_p"}
        self.answer = C.hybrid_answer(**{name: at[name] for name in written})
        self._numbers = C.hybrid_numbers(**{name: at[name] for name in INPUTS})
        self.python: PythonFunctions | None = None
        self._evaluate, self.called = evaluate, (INTERPRETED, "")
        self.awaited: Compiled | None = None
        self._functions = C.hybrid_functions(now=ct.cast(library.hybrid_now, c_void_p))
        if limits.threads > 1:
            self._functions.at_once = ct.cast(library.hybrid_at_once, c_void_p)
        self._unlisted, self._evaluations = False, 0
        self._bind(library, problem, repeated)
        self._limited: Limits | None = None
        self.sided = self.busy = False
        self.halted: Callable[[], bool] = bool
        self.raised: BaseException | None = None
        self.look: Look | None = None
        self.rows = np.empty((_ROWS, C.HYBRID_ROW))
        self._c_functions: tuple[Any, ...] = (
            _Look(self._see), _asking(self._keep, self._more_rows), _asking(self._keep, self._halt)
        )  # fmt: skip
        self._at_see, full, interrupted = (ct.cast(one, c_void_p) for one in self._c_functions)
        self.observer = C.hybrid_observer(
            interrupted=interrupted, full=full, rows=address(self.rows), capacity=_ROWS
        )
        self._functions.observer = ct.addressof(self.observer)
        self.options = options_of(problem, limits)
        size, *room = sizes_by(library.hybrid_solve_memory, 3, data, self.options)
        self._room = np.zeros(size // 8 + 2), *map(memory_of, room, (np.float64, np.int32))
        structures = data, self._functions, self._numbers, self.options
        memory, answer = map(address, self._room), ct.addressof(self.answer)
        self._call = *map(ct.addressof, structures), *memory, answer
        self._solve = library.hybrid_solve
        of_solve = "plan", "functions", "numbers", "options", "bytes", "doubles", "ints", "answer"
        self._slopes = np.zeros(data.n_p)
        self._shapes = shapes_of(sizes_in, sizes_out)
        self.data = C.hybrid_adapter(
            **dict(zip(of_solve, self._call, strict=True)), shapes=ct.addressof(self._shapes),
            given=len(INPUTS), solve=ct.cast(self._solve, c_void_p), slopes=address(self._slopes),
            inputs=tuple(at[name] for name in INPUTS), outputs=tuple(at[name] for name in OUTPUTS),
        )  # fmt: skip
        self.matrices = self.data.matrix

    def _bind(self, library: Any, problem: Problem, repeated: bool) -> None:
        """Have C call the functions of the problem."""
        functions, data, lists = problem.functions, self.plan.data, None
        if self._evaluate is not None:
            lists, self.awaited = forms_of(problem, repeated)
        if lists is not None:
            self._serve(lists, STAGED)
        elif self._evaluate is not None:
            alone = self.awaited is None and not repeated
            self._unlisted = alone and functions.instructions >= SMALL
            both = [f for f in (functions.first, functions.curvature) if f is not None]
            buffers = [buffer_of(one, self._evaluate) for one in both]
            entries = library.hybrid_buffered_first, library.hybrid_buffered_second
            self._call_by(entries, C.hybrid_buffers(*(made for made, _ in buffers)), buffers)
        else:
            self.python = PythonFunctions(functions, self._keep)
            self._call_by(self.python.entries)
        if functions.curvature is None:
            room = np.empty(library.hybrid_secants_doubles(ct.byref(data)))
            secants = C.hybrid_secants(address(room))
            self._kept.append((room, secants))
            self._functions.secants = ct.addressof(secants)

    def _call_by(self, entries: Iterable[Any], data: Any = None, behind: Any = None) -> None:
        """Have C call these from now on, with these data; ``behind`` is what they point to."""
        functions = self._functions
        for name, entry in zip(("first", "second", "values"), entries, strict=False):
            setattr(functions, name, ct.cast(entry, c_void_p))
        functions.self = None if data is None else ct.addressof(data)
        self._kept.append((data, behind))

    def fill(self, numbers: Numbers, sides: WorkingSet | None) -> None:
        """Set the inputs to checked numbers, and the working set of the next solve."""
        b, lam = numbers.bounds, (numbers.lam_x0, numbers.lam_g0)
        self.write((numbers.x0, numbers.p, b.lbx, b.ubx, b.lbg, b.ubg, *lam), sides)

    def write(self, values: Iterable[Any], sides: WorkingSet | None) -> None:
        """Set all inputs, in order, and the working set of the next solve."""
        for target, value in zip(self.ordered, values, strict=True):
            target[:] = value
        self.held[:] = [ELSE] * len(INPUTS)
        self.matrices[:] = [None] * len(INPUTS)
        self.begin_with(sides)

    def begin_with(self, sides: WorkingSet | None) -> None:
        """Set the working set of the next solve, which has to be kept until then."""
        self.sided = sides is not None
        both = (None, None) if sides is None else (address(sides.x), address(sides.g))
        self._numbers.side_x, self._numbers.side_g = both

    def limit(self, limits: Limits) -> None:
        """Set the tolerances of the solves to come, and what helps them; no part of a solve."""
        awaited, problem = self.awaited, self._problem()
        if self._unlisted and problem is not None and limits == self.limits:  # not in given time
            self._evaluations += self.answer.firsts + self.answer.seconds  # of the solve before
            multipliers = self.parts["lam_x0"].any() or self.parts["lam_g0"].any()
            warm = self.sided or multipliers or any(self.matrices[-2:])
            self._unlisted = not warm and self._evaluations < LISTED_AFTER
            lists, _ = forms_of(problem, repeated=not self._unlisted)
            if lists is not None:
                self._unlisted = False
                self._serve(lists, STAGED)
        if awaited is not None and awaited.code is not None:
            self._serve(awaited.code, COMPILED)
            self.awaited = None
        elif awaited is not None:
            self.called = self.called[0], awaited.note or ARRIVED
        self._limited = limits
        data, tolerances = self._numbers, limits.tolerances
        data.tol, data.max_iter = limits.scaled_tol, min(limits.max_iter, _MOST)
        data.max_time = limits.max_time if limits.max_time < np.inf else 0.0
        for name in ("feasibility", "stationarity", "complementarity"):
            setattr(data, name, getattr(tolerances, name))

    def solve(
        self, limits: Limits, look: Look | None = None, matrices: bool = False
    ) -> dict[str, ca.DM] | None:
        """Solve for what the inputs hold; None where that was not begun, see :data:`REFUSED`.

        With ``matrices`` it is called by CasADi, which makes its matrices of the outputs and reads
        inputs from the ``ca.DM`` to which :attr:`matrices` points, where it does.
        """
        if limits is not self._limited or self._unlisted or self.awaited is not None:  # seldom
            self.limit(limits)
        if look is not self.look:
            self.look = look
            self.observer.look = None if look is None else self._at_see
        if self.python is not None:
            self.python.begin(limits.max_time)
        self.observer.count, self.raised, self.busy = 0, None, True
        outputs: dict[str, ca.DM] = {}
        try:
            if matrices:
                outputs = self.ready.call(self.named)
            else:
                self.data.status = self._solve(*self._call)
                self.parts["f"][:] = self.answer.end.f
        except SystemError as error:
            raise _interrupt_in(error) from None
        finally:
            self.busy = False
        return None if self.data.status in REFUSED else outputs

    def unobserved(self, raised: Callable[[BaseException], object]) -> None:
        """Show iterates to nobody; ``raised`` takes what a signal raises. C begins by itself."""
        if not self.observer.rows:  # it is so already
            return
        self._c_functions = (_asking(raised),)
        self.observer = C.hybrid_observer(interrupted=ct.cast(self._c_functions[0], c_void_p))
        self._functions.observer = ct.addressof(self.observer)

    @cached_property
    def ready(self) -> ca.Function:
        """The method as a Function of CasADi, to be called with :attr:`named`."""
        self.differentiate()
        self._columns = [ca.DM.zeros(one.size) for one in self.ordered]
        self.matrix_type = ca.DM if is_known() else None
        """The type whose numbers C reads where they lie."""
        if self.matrix_type:
            self.data.column[:] = [MatrixData.of(column).pattern for column in self._columns]
        self.named = {"solver": ca.DM(ct.addressof(self.data))}
        return function_of("hybrid_ready", self._shapes)

    def differentiate(self) -> None:
        """Have C compute lam_p, by a buffer on what a solve finds; not where Python is called."""
        problem = self._problem()
        if self.data.slope or problem is None or not problem.n_p or self._evaluate is None:
            return
        buffer, _ = problem.parameter_gradient.buffer()
        for i, name in enumerate(("x", "lam_g", "p")):
            buffer.set_arg(i, self.parts[name].data)
        buffer.set_res(0, self._slopes.data)
        self._kept.append(buffer)
        self.data.slope = self._evaluate
        self.data.raw = address_of(buffer)

    def _serve(self, code: Code | Lists, called: str) -> None:
        """Have the functions called in this form from now on."""
        self._call_by(code.entries, *code.functions())
        self.called = called, ""

    # What C calls. An exception does not pass through it: whoever called for the solve gets that.

    def _keep(self, error: BaseException) -> None:
        self.raised = error
        self.observer.ended = 1

    def _halt(self) -> None:
        if self.halted():
            raise KeyboardInterrupt

    def _see(self, _self: Any, view: Any) -> int:
        try:
            of, n, m = view.contents, self.plan.data.n_x, self.plan.data.n_g
            seen = View(
                copied(of.row, C.HYBRID_ROW).tolist(), copied(of.x, n), copied(of.g, m),
                copied(of.lam_x, n), copied(of.lam_g, m), bool(of.restoring),
            )  # fmt: skip
            return bool(self.look is not None and self.look(seen))
        except BaseException as error:  # noqa: BLE001
            self.raised = error
            return 1

    def _more_rows(self) -> None:
        self.rows = np.concatenate((self.rows, np.empty_like(self.rows)))
        self.observer.rows, self.observer.capacity = address(self.rows), len(self.rows)


def _interrupt_in(error: SystemError) -> BaseException:
    """The Ctrl-C that arrived while SWIG made CasADi's matrices, which lets a SystemError out."""
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, KeyboardInterrupt):
        cause = cause.__cause__
    return error if cause is None else cause


def _asking(keep: Callable[[BaseException], object], act: Callable[[], object] = int) -> Any:
    """A function of C that does ``act``, and answers 1 where the handler of a signal raises.

    Such a handler runs as soon as Python's code does, in a function before its first line, where
    nothing catches what is raised, and ctypes would drop it. A generator goes on within ``try``.

    ``keep`` takes what was raised.
    """

    def answers() -> Generator[int, Any, None]:
        answer = 0
        while True:
            try:
                yield answer
                act()
                answer = 0
            except GeneratorExit:
                return
            except BaseException as error:  # noqa: BLE001 - whoever called for the solve gets it
                keep(error)
                answer = 1

    generator = answers()
    next(generator)
    return _Ask(generator.send)


class Engine:
    """The solvers of one problem, for one thread at a time.

    Args:
        problem: has to live as long as this is used.

    Attributes:
        library: the core in C.
        evaluate: :func:`trigger`; None where Python calls the functions.
        cores: those that are kept, the one that was made last first.
    """

    def __init__(self, problem: Problem) -> None:
        # The engines of a thread are known for as long as their problems live.
        self.library, self._problem = engine(), ref(problem)
        self.evaluate = None if why_not(problem) else trigger()
        self.cores: list[Core] = []

    def core(self, bounds: Bounds, limits: Limits, repeated: bool = False) -> Core:
        """The solver for bounds of these kinds; another one while that is in use."""
        problem = self._problem()
        assert problem is not None  # whoever asks has it
        plan = plan_of(self.library, problem, bounds)
        fit = [one for one in self.cores if (one.plan, one.limits) == (plan, limits)]
        found = next((one for one in fit if not one.busy), None)
        if found is None:
            found = Core(self.library, problem, plan, limits, self.evaluate, repeated)
            others = [one for one in self.cores if one not in fit]
            self.cores = [found, *fit, *others[: _KINDS - 1]]
        return found


class _OfThread(threading.local):
    def __init__(self) -> None:
        self.engines = WeakKeyDictionary[Problem, Engine](), WeakKeyDictionary[Problem, Engine]()


_of_thread = _OfThread()


def engine_of(problem: Problem, rows: bool = False) -> Engine:
    """The engine of the asking thread for a problem, kept for as long as that lives.

    That for ``rows``, many solves at once, is another one: they write where a single solve reads.
    """
    engines = _of_thread.engines[rows]
    return engines.get(problem) or engines.setdefault(problem, Engine(problem))


def why_not(problem: Problem) -> str:
    """Why C cannot call the functions of a problem by itself, empty where it can."""
    functions = problem.functions
    if not problem.n:
        return "the problem has no variable"
    if trigger() is None:
        return "this CasADi does not export what evaluates a buffer"
    if functions.assemblies is not None:
        return ""  # maps of what has a scalar form
    for function in filter(None, (functions.first, functions.curvature)):
        if not function.is_a("SXFunction"):
            # What it calls may raise an exception, which may not pass through C.
            return "a function of the problem has no scalar form"
        if not all(called.is_a("SXFunction") for called in function.find_functions()):
            return "a function of the problem calls one that has no scalar form"
    return ""
