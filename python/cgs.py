"""Latent world models that are easy to plan with: the C library from Python.

Standard library only.  With NumPy, arguments and results are arrays; without,
images are bytes and numbers are (nested) lists.

    import cgs
    agent = cgs.Agent("runs/lewm-cgs", planner="cem", samples=64)
    sim, there = cgs.Sim("tworooms"), cgs.Sim("tworooms")
    sim.reset(seed=0)
    there.set_state(sim.goal)
    agent.goal_image(there.render(agent.image_size))
    plan = agent.plan(sim.render(agent.image_size))
    for action in plan.actions[0]:                 # the first action block
        sim.step(action)

The library is the file named by the environment variable CGS_LIBRARY; else the one built in
this source tree, the one installed with this file, or the system's, in this order.
Failures raise cgs.Error with the library's message.
"""

import ctypes
import ctypes.util
import glob
import os
from collections import namedtuple
from ctypes import POINTER, byref, c_char_p, c_double, c_float, c_int, c_uint8, c_uint64, c_void_p

try:
    import numpy
except ImportError:
    numpy = None


class Error(RuntimeError):
    """A call failed; status is the name of the library's status code."""

    def __init__(self, status, sentence):
        super().__init__(sentence)
        self.status = status


# ---- the structures of cgs.h ------------------------------------------------------------------

class _Options(ctypes.Structure):
    _fields_ = [("device", c_char_p), ("precision", c_char_p), ("threads", c_int),
                ("planner", c_char_p), ("samples", c_int), ("iters", c_int), ("horizon", c_int),
                ("tau", c_double), ("seed", c_uint64)]


class _AgentInfo(ctypes.Structure):
    _fields_ = [("image_size", c_int), ("width", c_int), ("history", c_int),
                ("action_dim", c_int), ("frameskip", c_int), ("horizon", c_int),
                ("env", c_char_p), ("method", c_char_p)]


class _Observation(ctypes.Structure):
    _fields_ = [("frames", c_void_p), ("count", c_int), ("executed", c_void_p),
                ("advanced", c_int)]


class _Report(ctypes.Structure):
    _fields_ = [("seconds", c_double), ("iterations", c_int), ("cut", c_int), ("cost", c_double)]


class _SimInfo(ctypes.Structure):
    _fields_ = [("id", c_char_p), ("summary", c_char_p), ("success", c_char_p),
                ("version", c_int), ("state_dim", c_int), ("action_dim", c_int),
                ("action_range", c_double)]


_COST = ctypes.CFUNCTYPE(c_int, c_void_p, POINTER(c_float), POINTER(c_float), c_int,
                         POINTER(c_float))

# name, result, arguments
_FUNCTIONS = [
    ("cgs_last_error", c_char_p, []),
    ("cgs_status_name", c_char_p, [c_int]),
    ("cgs_version", c_char_p, []),
    ("cgs_agent_create", c_int, [POINTER(c_void_p), c_char_p, POINTER(_Options)]),
    ("cgs_agent_destroy", None, [c_void_p]),
    ("cgs_agent_describe", _AgentInfo, [c_void_p]),
    ("cgs_agent_encode", c_int, [c_void_p, c_void_p, c_int, c_void_p]),
    ("cgs_agent_goal_image", c_int, [c_void_p, c_void_p]),
    ("cgs_agent_goal_latent", c_int, [c_void_p, c_void_p]),
    ("cgs_agent_goal_cost", c_int, [c_void_p, _COST, c_void_p]),
    ("cgs_agent_plan", c_int, [c_void_p, POINTER(_Observation), c_double, c_void_p,
                               POINTER(_Report)]),
    ("cgs_planner_count", c_int, []),
    ("cgs_planner_id", c_char_p, [c_int]),
    ("cgs_sim_count", c_int, []),
    ("cgs_sim_id", c_char_p, [c_int]),
    ("cgs_sim_create", c_int, [POINTER(c_void_p), c_char_p]),
    ("cgs_sim_destroy", None, [c_void_p]),
    ("cgs_sim_describe", _SimInfo, [c_void_p]),
    ("cgs_sim_reset", c_int, [c_void_p, c_uint64]),
    ("cgs_sim_set_state", c_int, [c_void_p, c_void_p, c_int]),
    ("cgs_sim_set_goal", c_int, [c_void_p, c_void_p, c_int]),
    ("cgs_sim_state", POINTER(c_double), [c_void_p]),
    ("cgs_sim_goal", POINTER(c_double), [c_void_p]),
    ("cgs_sim_step", c_int, [c_void_p, c_void_p, c_int]),
    ("cgs_sim_success", c_int, [c_void_p]),
    ("cgs_sim_render", c_int, [c_void_p, c_int, c_void_p]),
]


def _candidates():
    here = os.path.dirname(os.path.abspath(__file__))
    if os.environ.get("CGS_LIBRARY"):
        return [os.environ["CGS_LIBRARY"]]
    built = sorted(glob.glob(os.path.join(here, "..", "build", "libcgs.so.*")))
    installed = os.path.join(here, "..", "..", "..", "lib", "libcgs.so.2")
    found = built + [p for p in [installed] if os.path.exists(p)]
    return found or [ctypes.util.find_library("cgs") or "libcgs.so.2"]


def _load():
    path = _candidates()[0]
    try:
        library = ctypes.CDLL(path)
    except OSError as e:
        raise ImportError(f"{path}: {e}; run make, or name the library in CGS_LIBRARY") from e
    for name, result, arguments in _FUNCTIONS:
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library


_lib = _load()


def _check(status):
    if status:
        raise Error(_lib.cgs_status_name(status).decode(), _lib.cgs_last_error().decode())


# ---- numbers in and out -----------------------------------------------------------------------

_TYPES = {"u1": c_uint8, "f4": c_float, "f8": c_double}


def _flat(values, into):
    for v in values:
        if hasattr(v, "__iter__"):
            _flat(v, into)
        else:
            into.append(v)
    return into


def _numbers(values, kind, multiple, what):
    """A C array of `values`, and its length in units of `multiple` numbers."""
    if numpy is not None:
        a = numpy.asarray(values) if not isinstance(values, (bytes, bytearray, memoryview)) \
            else numpy.frombuffer(values, numpy.uint8)
        # an image of floats would be truncated silently
        if kind == "u1" and a.dtype != numpy.uint8 and not (
                a.dtype.kind in "iu" and a.size and 0 <= a.min() and a.max() <= 255):
            raise TypeError(f"{what}: wants bytes from 0 to 255, got {a.dtype}")
        a = numpy.ascontiguousarray(a, "=" + kind)
        count, pointer = a.size, a.ctypes.data_as(c_void_p)
        pointer.keep = a
    else:
        if isinstance(values, (bytes, bytearray, memoryview)):
            flat = bytes(values)
        else:
            flat = _flat(values, [])
            if kind == "u1":
                flat = bytes(flat)
        if kind == "u1":
            data = (c_uint8 * len(flat)).from_buffer_copy(flat)
        else:
            data = (_TYPES[kind] * len(flat))(*flat)
        count, pointer = len(flat), ctypes.cast(data, c_void_p)
        pointer.keep = data
    if count == 0 or count % multiple:
        raise ValueError(f"{what}: wants {multiple} numbers or a multiple, got {count}")
    return pointer, count // multiple


def _exactly(values, kind, size, what):
    pointer, times = _numbers(values, kind, size, what)
    if times != 1:
        raise ValueError(f"{what}: wants {size} numbers, got {times * size}")
    return pointer


def _nest(flat, shape):
    if len(shape) <= 1:
        return flat
    size = len(flat) // shape[0]
    return [_nest(flat[i * size:(i + 1) * size], shape[1:]) for i in range(shape[0])]


def _result(data, kind, shape):
    """A copy of a ctypes array or pointer as an array, or as lists (images: bytes)."""
    size = 1
    for n in shape:
        size *= n
    if numpy is not None:
        raw = ctypes.string_at(data, size * ctypes.sizeof(_TYPES[kind]))
        return numpy.frombuffer(raw, kind).reshape(shape).copy()
    if kind == "u1":
        return ctypes.string_at(data, size)
    return _nest([data[i] for i in range(size)], shape)


# ---- environments -----------------------------------------------------------------------------

def version():
    """The version of the loaded library."""
    return _lib.cgs_version().decode()


def environments():
    """The ids of the environments."""
    return [_lib.cgs_sim_id(i).decode() for i in range(_lib.cgs_sim_count())]


def planners():
    """The names of the planners that an Agent takes."""
    return [_lib.cgs_planner_id(i).decode() for i in range(_lib.cgs_planner_count())]


class _Owner:
    """Owns an object of the library; closed by close(), `with`, or garbage collection."""
    _destroy = None
    _handle = None

    def close(self):
        if self._handle is not None:
            self._destroy(self._handle)
            self._handle = None

    def _open(self):
        if self._handle is None:
            raise ValueError(f"this {type(self).__name__} is closed")
        return self._handle

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def __del__(self):
        self.close()


class Sim(_Owner):
    """One environment: reset, or set_state and set_goal; then step."""
    _destroy = staticmethod(_lib.cgs_sim_destroy)

    def __init__(self, id):
        handle = c_void_p()
        _check(_lib.cgs_sim_create(byref(handle), id.encode()))
        self._handle = handle
        info = _lib.cgs_sim_describe(handle)
        self.id, self.summary = info.id.decode(), info.summary.decode()
        self.success_rule = info.success.decode()
        self.version, self.state_dim = info.version, info.state_dim
        self.action_dim, self.action_range = info.action_dim, info.action_range

    def reset(self, seed=0):
        """A random start and goal."""
        _check(_lib.cgs_sim_reset(self._open(), seed))
        return self.state

    def set_state(self, state):
        """A new simulation in that state, which is also its goal until set_goal."""
        p = _exactly(state, "f8", self.state_dim, "state")
        _check(_lib.cgs_sim_set_state(self._open(), p, self.state_dim))

    def set_goal(self, goal):
        p = _exactly(goal, "f8", self.state_dim, "goal")
        _check(_lib.cgs_sim_set_goal(self._open(), p, self.state_dim))

    @property
    def state(self):
        return _result(_lib.cgs_sim_state(self._open()), "f8", (self.state_dim,))

    @property
    def goal(self):
        return _result(_lib.cgs_sim_goal(self._open()), "f8", (self.state_dim,))

    @property
    def success(self):
        """Whether the present state satisfies success_rule."""
        return bool(_lib.cgs_sim_success(self._open()))

    def step(self, action):
        """One primitive action; returns the new state."""
        p = _exactly(action, "f8", self.action_dim, "action")
        _check(_lib.cgs_sim_step(self._open(), p, self.action_dim))
        return self.state

    def render(self, side=224):
        """The image, (side, side, 3)."""
        if side <= 0:
            raise ValueError(f"side: wants at least 1, got {side}")
        rgb = (c_uint8 * (side * side * 3))()
        _check(_lib.cgs_sim_render(self._open(), side, rgb))
        return _result(rgb, "u1", (side, side, 3))


# ---- agents -----------------------------------------------------------------------------------

# actions (horizon, frameskip, action_dim); the rest as in cgs_plan_report
Plan = namedtuple("Plan", "actions seconds iterations cut cost")


class Agent(_Owner):
    """A model directory with a planner.  Omitted options have the library's defaults (cgs.h)."""
    _destroy = staticmethod(_lib.cgs_agent_destroy)

    def __init__(self, directory, *, device=None, precision=None, threads=0, planner=None,
                 samples=0, iters=0, horizon=0, tau=0.0, seed=0):
        text = lambda s: None if s is None else s.encode()
        options = _Options(text(device), text(precision), threads, text(planner), samples, iters,
                           horizon, tau, seed)
        handle = c_void_p()
        _check(_lib.cgs_agent_create(byref(handle), os.fsencode(directory), byref(options)))
        self._handle = handle
        self._cost = self._raised = None
        info = _lib.cgs_agent_describe(handle)
        for name, _ in _AgentInfo._fields_:
            value = getattr(info, name)
            setattr(self, name, value.decode() if isinstance(value, bytes) else value)
        self._frame = self.image_size * self.image_size * 3

    def encode(self, frames):
        """The latents (n, width) of images (n, S, S, 3), or of one image (S, S, 3)."""
        p, n = _numbers(frames, "u1", self._frame, "frames")
        z = (c_float * (n * self.width))()
        _check(_lib.cgs_agent_encode(self._open(), p, n, z))
        return _result(z, "f4", (n, self.width))

    def goal_image(self, rgb):
        """Sets the goal to this image (S, S, 3)."""
        p = _exactly(rgb, "u1", self._frame, "goal image")
        _check(_lib.cgs_agent_goal_image(self._open(), p))

    def goal_latent(self, z):
        """Sets the goal to this latent (width)."""
        p = _exactly(z, "f4", self.width, "goal latent")
        _check(_lib.cgs_agent_goal_latent(self._open(), p))

    def goal_cost(self, cost):
        """Sets the goal to a low cost(z, actions) -> (n): z (n, horizon, width) are the predicted
        latents, actions (n, horizon, frameskip, action_dim) those that lead there."""
        def call(_, z, actions, n, out):
            try:
                values = cost(_result(z, "f4", (n, self.horizon, self.width)),
                              _result(actions, "f4", (n, self.horizon, self.frameskip,
                                                      self.action_dim)))
                p = _exactly(values, "f4", n, "cost")
                ctypes.memmove(out, p, 4 * n)
                return 0
            except BaseException as e:  # exceptions cannot cross C: plan re-raises it
                self._raised = e
                return 1
        function = _COST(call)
        _check(_lib.cgs_agent_goal_cost(self._open(), function, None))
        self._cost = function  # alive as long as the library may call it

    def plan(self, frames, executed=None, advanced=0, deadline=0.0):
        """The next actions.  frames: the present image, or up to `history` of them one action
        block apart, the present last, with the blocks `executed` between them.  advanced: blocks
        of the last plan executed since; its rest warm-starts the search.  deadline: seconds."""
        p, n = _numbers(frames, "u1", self._frame, "frames")
        e = None
        if n > 1:
            if executed is None:
                raise ValueError(f"{n} frames need the actions executed between them")
            e = _exactly(executed, "f8", (n - 1) * self.frameskip * self.action_dim, "executed")
        actions = (c_double * (self.horizon * self.frameskip * self.action_dim))()
        report = _Report()
        now = _Observation(p, n, e, advanced)
        self._raised = None
        status = _lib.cgs_agent_plan(self._open(), byref(now), deadline, actions, byref(report))
        if self._raised is not None:
            raise self._raised
        _check(status)
        shape = (self.horizon, self.frameskip, self.action_dim)
        return Plan(_result(actions, "f8", shape), report.seconds, report.iterations,
                    bool(report.cut), report.cost)
