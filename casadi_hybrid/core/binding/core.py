"""The core for one problem and thread: memory, functions and ``hybrid_solve``."""

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
# Inputs that a solution does not depend on as long as they lead to it.
STARTS = ("x0", "lam_x0", "lam_g0")
# Further answers of the core: first derivatives at x and at the start, the start, the last step.
# Then a point where a function was not defined, and the last iterate at a limit.
MORE = ("gradient", "J", "gradient0", "J0", "x_start", "step", "x_undefined", "last")
# Statuses of a solve that was not begun.
REFUSED = C.HYBRID_OTHER_SHAPE, C.HYBRID_BAD_NUMBERS, C.HYBRID_OTHER_PATTERN
# Sentinels stored in Core.held.
ELSE, MATRIX = object(), object()
_ROWS = 256  # iterates for which there is memory at first
_KINDS = 4  # patterns of bounds whose cores an engine keeps
_MOST = 2**31 - 1  # largest int of C

Look = Callable[[View], bool]
_Look = ct.CFUNCTYPE(c_int, c_void_p, ct.POINTER(C.hybrid_view))
_Ask = ct.CFUNCTYPE(c_int, c_void_p)


class Core:
    """Memory of one solve at a time for one plan, and the method on it.

    ``evaluate`` is the address from :func:`trigger`; None if functions may raise, and Python calls
    them. ``repeated``: many solves are to come; else a warm start or many evaluations show it.
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
        # A weak reference: the problem owns its engines, and they own the cores.
        self.plan, self.limits, self._problem = plan, limits, ref(problem)
        self._kept: list[Any] = []
        n, m, n_p, J = data.n_x, data.n_g, data.n_p, data.nnz_J
        sizes_in, sizes_out = (n, n_p, n, n, m, m, n, m), (n, 1, m, n, m, n_p)
        sizes = (*sizes_in, *sizes_out, n, J, n, J, n, n, n, 2 * n + m)
        slices = starmap(slice, pairwise([0, *accumulate(sizes)]))
        # One array for all numbers: `places` are its slices by name, `parts` views of them.
        self.places = dict(zip(INPUTS + OUTPUTS + MORE, slices, strict=True))
        self.numbers = np.zeros(sum(sizes))
        self.parts = {name: self.numbers[place] for name, place in self.places.items()}
        base = address(self.numbers)
        # Addresses of the parts; a double has 8 bytes.
        at = {name: base + 8 * place.start for name, place in self.places.items()}
        # held: for each input the scalar that fills it, None for its default, MATRIX if C reads a
        # ca.DM at `matrices`, else ELSE.
        self.ordered, self.held = [self.parts[name] for name in INPUTS], [ELSE] * len(INPUTS)
        self.shapes = [part.shape for part in self.ordered]
        # f is in the answer itself, and lam_p follows from a gradient by CasADi.
        written = set(OUTPUTS + MORE) - {"f", "lam_p"}
        self.answer = C.hybrid_answer(**{name: at[name] for name in written})
        self._numbers = C.hybrid_numbers(**{name: at[name] for name in INPUTS})
        self.python: PythonFunctions | None = None
        # called: form of the functions, and a note if they were to be compiled but are not.
        self._evaluate, self.called = evaluate, (INTERPRETED, "")
        self.awaited: Compiled | None = None  # machine code that serves as soon as it is there
        self._functions = C.hybrid_functions(now=ct.cast(library.hybrid_now, c_void_p))
        if limits.threads > 1:
            # Two halves of a factorization at once have the same bits as one after the other.
            self._functions.at_once = ct.cast(library.hybrid_at_once, c_void_p)
        self._unlisted, self._evaluations = False, 0
        self._bind(library, problem, repeated)
        self._limited: Limits | None = None
        self.sided = self.busy = False
        # Asked about every 0.1 s; True ends the solve.
        self.halted: Callable[[], bool] = bool
        self.raised: BaseException | None = None  # exception that ended the last solve
        self.look: Look | None = None
        self.rows = np.empty((_ROWS, C.HYBRID_ROW))
        asking = _asking(self._keep, self._more_rows), _asking(self._keep, self._halt)
        # ctypes does not keep its callbacks: C would call freed memory.
        self._c_functions: tuple[Any, ...] = _Look(self._see), *asking
        self._at_see, full, interrupted = (ct.cast(f, c_void_p) for f in self._c_functions)
        self.observer = C.hybrid_observer(
            interrupted=interrupted, full=full, rows=address(self.rows), capacity=_ROWS
        )
        self._functions.observer = ct.addressof(self.observer)
        self.options = options_of(problem, limits)
        size, *room = sizes_by(library.hybrid_solve_memory, 3, data, self.options)
        # Python owns all memory of a solve. Doubles align it for every structure of C.
        self._room = np.zeros(size // 8 + 2), *map(memory_of, room, (np.float64, np.int32))
        structures = data, self._functions, self._numbers, self.options
        memory, answer = map(address, self._room), ct.addressof(self.answer)
        self._call = *map(ct.addressof, structures), *memory, answer
        self._solve = library.hybrid_solve
        of_solve = "plan", "functions", "numbers", "options", "bytes", "doubles", "ints", "answer"
        self._slopes = np.zeros(data.n_p)
        self._shapes = shapes_of(sizes_in, sizes_out)
        self.data = C.hybrid_adapter(
            **dict(zip(of_solve, self._call, strict=True)),
            shapes=ct.addressof(self._shapes),
            given=len(INPUTS),
            solve=ct.cast(self._solve, c_void_p),
            slopes=address(self._slopes),
            inputs=tuple(at[name] for name in INPUTS),
            outputs=tuple(at[name] for name in OUTPUTS),
        )
        self.matrices = self.data.matrix

    def _bind(self, library: Any, problem: Problem, repeated: bool) -> None:
        """Let C call the functions of the problem."""
        functions, data, lists = problem.functions, self.plan.data, None
        if self._evaluate is not None:
            lists, self.awaited = forms_of(problem, repeated)
        if lists is not None:
            self._serve(lists, STAGED)
        elif self._evaluate is not None:
            alone = self.awaited is None and not repeated
            self._unlisted = alone and functions.instructions >= SMALL
            present = [f for f in (functions.first, functions.curvature) if f is not None]
            buffers = [buffer_of(function, self._evaluate) for function in present]
            entries = library.hybrid_buffered_first, library.hybrid_buffered_second
            self._call_by(entries, C.hybrid_buffers(*(data for data, _ in buffers)), buffers)
        else:
            self.python = PythonFunctions(functions, self._keep)
            self._call_by(self.python.entries)
        if functions.curvature is None:
            # Without second derivatives the core approximates the Hessian by secants.
            room = np.empty(library.hybrid_secants_doubles(ct.byref(data)))
            secants = C.hybrid_secants(address(room))
            self._kept.append((room, secants))
            self._functions.secants = ct.addressof(secants)

    def _call_by(self, entries: Iterable[Any], data: Any = None, owner: Any = None) -> None:
        """Let C call these functions with these data; ``owner`` holds the memory behind them."""
        functions = self._functions
        # `values`: f and g alone, if the first derivatives are finite differences.
        functions.first, functions.second, *values = (ct.cast(f, c_void_p) for f in entries)
        if values:
            functions.values = values[0]
        functions.self = None if data is None else ct.addressof(data)
        self._kept.append((data, owner))

    def fill(self, numbers: Numbers, sides: WorkingSet | None) -> None:
        """Set the inputs to checked values, and the working set of the next solve."""
        b, lam = numbers.bounds, (numbers.lam_x0, numbers.lam_g0)
        self.write((numbers.x0, numbers.p, b.lbx, b.ubx, b.lbg, b.ubg, *lam), sides)

    def write(self, values: Iterable[Any], sides: WorkingSet | None) -> None:
        """Set all inputs in order, and the working set of the next solve."""
        for target, value in zip(self.ordered, values, strict=True):
            target[:] = value
        self.held[:] = [ELSE] * len(INPUTS)
        self.matrices[:] = [None] * len(INPUTS)
        self.begin_with(sides)

    def begin_with(self, sides: WorkingSet | None) -> None:
        """Set the working set of the next solve; the caller keeps it until then."""
        self.sided = sides is not None
        self._numbers.side_x = None if sides is None else address(sides.x)
        self._numbers.side_g = None if sides is None else address(sides.g)

    def limit(self, limits: Limits) -> None:
        """Set the tolerances of the next solves, and choose the form of the functions."""
        awaited, problem = self.awaited, self._problem()
        # The search for repeated parts takes time that other limits may not leave.
        if self._unlisted and problem is not None and limits == self.limits:
            self._evaluations += self.answer.firsts + self.answer.seconds  # of the last solve
            # Multipliers or a working set tell of a warm start, one of many solves.
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
        # C counts in int, and 0 seconds are no limit.
        data.tol, data.max_iter = limits.scaled_tol, min(limits.max_iter, _MOST)
        data.max_time = limits.max_time if limits.max_time < np.inf else 0.0
        data.feasibility, data.stationarity = tolerances.feasibility, tolerances.stationarity
        data.complementarity = tolerances.complementarity

    def solve(
        self, limits: Limits, look: Look | None = None, matrices: bool = False
    ) -> dict[str, ca.DM] | None:
        """Solve for the inputs; None for a solve that was not begun, see :data:`REFUSED`."""
        if limits is not self._limited or self._unlisted or self.awaited is not None:
            self.limit(limits)
        if look is not self.look:
            self.look = look
            self.observer.look = None if look is None else self._at_see
        if self.python is not None:
            self.python.begin(limits.max_time)
        self.observer.count, self.raised, self.busy = 0, None, True
        outputs: dict[str, ca.DM] = {}
        try:
            # CasADi makes matrices of the outputs; C reads inputs where `matrices` point.
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
        """Prepare for calls without Python: no iterates; ``raised`` takes a signal's exception."""
        if not self.observer.rows:  # done before
            return
        self._c_functions = (_asking(raised),)
        self.observer = C.hybrid_observer(interrupted=ct.cast(self._c_functions[0], c_void_p))
        self._functions.observer = ct.addressof(self.observer)

    @cached_property
    def ready(self) -> ca.Function:
        """The method as a Function of CasADi, to be called with the arguments :attr:`named`."""
        self.differentiate()
        # Equal patterns are one object in CasADi: these columns stay alive to keep theirs.
        self._columns = [ca.DM.zeros(part.size) for part in self.ordered]
        # The type whose numbers C reads in place, or None.
        self.matrix_type = ca.DM if is_known() else None
        if self.matrix_type:
            self.data.column[:] = [MatrixData.of(column).pattern for column in self._columns]
        self.named = {"solver": ca.DM(ct.addressof(self.data))}
        return function_of("hybrid_ready", self._shapes)

    def differentiate(self) -> None:
        """Let C compute lam_p by a buffer on the answer; not if Python calls the functions."""
        problem = self._problem()
        if self.data.slope or problem is None or not problem.n_p or self._evaluate is None:
            return
        buffer, _ = problem.parameter_gradient.buffer()
        for i, name in enumerate(("x", "lam_g", "p")):
            # No copies: the buffer reads the solution where the core leaves it.
            buffer.set_arg(i, self.parts[name].data)
        buffer.set_res(0, self._slopes.data)
        self._kept.append(buffer)
        self.data.slope = self._evaluate
        self.data.raw = address_of(buffer)

    def _serve(self, code: Code | Lists, called: str) -> None:
        """Let C call the functions in this form."""
        self._call_by(code.entries, *code.functions())
        self.called = called, ""

    # Callbacks from C. Exceptions cannot pass through C: they are kept, and end the solve.

    def _keep(self, error: BaseException) -> None:
        self.raised = error
        self.observer.ended = 1

    def _halt(self) -> None:
        if self.halted():
            raise KeyboardInterrupt

    def _see(self, _self: Any, view: Any) -> int:
        try:
            seen, n, m = view.contents, self.plan.data.n_x, self.plan.data.n_g
            # Copies: C writes the next iterate over its arrays.
            row = copied(seen.row, C.HYBRID_ROW).tolist()
            x, lam_x = copied(seen.x, n), copied(seen.lam_x, n)
            g, lam_g = copied(seen.g, m), copied(seen.lam_g, m)
            iterate = View(row, x, g, lam_x, lam_g, bool(seen.restoring))
            return self.look is not None and bool(self.look(iterate))
        except BaseException as error:  # noqa: BLE001
            self.raised = error
            return 1

    def _more_rows(self) -> None:
        self.rows = np.concatenate((self.rows, np.empty_like(self.rows)))
        self.observer.rows, self.observer.capacity = address(self.rows), len(self.rows)


def _interrupt_in(error: SystemError) -> BaseException:
    """Find the Ctrl-C that arrived while SWIG made CasADi's matrices: it raises a SystemError."""
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, KeyboardInterrupt):
        cause = cause.__cause__
    return error if cause is None else cause


def _asking(keep: Callable[[BaseException], object], act: Callable[[], object] = int) -> Any:
    """C function that calls ``act``: 1, after ``keep``, if ``act`` or a signal raises, else 0."""

    # Why a generator: Python runs the handler of a signal as soon as its code is entered. A plain
    # function would raise before its first line, outside of any `try`, and ctypes would drop the
    # exception. A generator resumes inside its `try`.
    def answers() -> Generator[int, Any, None]:
        answer = 0
        while True:
            try:
                yield answer
                act()
                answer = 0
            except GeneratorExit:
                return
            except BaseException as error:  # noqa: BLE001 - the caller of the solve raises it
                keep(error)
                answer = 1

    generator = answers()
    # Only a started generator takes a value by send, and is inside its `try`.
    next(generator)
    return _Ask(generator.send)


class Engine:
    """Cores of one problem, for one thread at a time; the caller keeps the problem alive."""

    def __init__(self, problem: Problem) -> None:
        self.library, self._problem = engine(), ref(problem)  # the problem owns its engines
        self.evaluate = None if why_not(problem) else trigger()
        self.cores: list[Core] = []  # the newest first

    def core(self, bounds: Bounds, limits: Limits, repeated: bool = False) -> Core:
        """The core for bounds of this pattern; another one while that is in use."""
        problem = self._problem()
        assert problem is not None
        plan = plan_of(self.library, problem, bounds)
        # Plans have no equality of values: a core fits the very plan that plan_of returns.
        fit = [core for core in self.cores if (core.plan, core.limits) == (plan, limits)]
        core = next((core for core in fit if not core.busy), None)
        if core is None:
            core = Core(self.library, problem, plan, limits, self.evaluate, repeated)
            others = [other for other in self.cores if other not in fit]
            self.cores = [core, *fit, *others[: _KINDS - 1]]
        return core


class _OfThread(threading.local):
    def __init__(self) -> None:
        self.engines = WeakKeyDictionary[Problem, Engine](), WeakKeyDictionary[Problem, Engine]()


_of_thread = _OfThread()


def engine_of(problem: Problem, rows: bool = False) -> Engine:
    """Engine of this thread for a problem, kept as long as the problem lives."""
    # Many solves at once write where a single one reads: they have an engine of their own.
    engines = _of_thread.engines[rows]
    return engines.get(problem) or engines.setdefault(problem, Engine(problem))


def why_not(problem: Problem) -> str:
    """Reason why C cannot call the functions of a problem without Python; empty if it can."""
    functions = problem.functions
    if not problem.n:
        return "the problem has no variable"
    if trigger() is None:
        return "this CasADi does not export what evaluates a buffer"
    if functions.assemblies is not None:
        return ""  # maps of what has a scalar form
    for function in filter(None, (functions.first, functions.curvature)):
        if not function.is_a("SXFunction"):
            # Functions that it calls may raise, and exceptions cannot pass through C.
            return "a function of the problem has no scalar form"
        if not all(called.is_a("SXFunction") for called in function.find_functions()):
            return "a function of the problem calls one that has no scalar form"
    return ""
