"""Closed-loop evaluation in any environment with Gymnasium's methods, as `cgs eval` does it."""

from __future__ import annotations

import ctypes
import json
import math
import os
from ctypes import byref, c_char, c_void_p
from typing import Any, Callable, Dict, List, Optional, Tuple, Union

from ._declarations import OutcomeRow, ResultSettings, StartRow
from ._library import call, lib
from ._numbers import RAW, plain
from .agent import Agent
from .result import Outcome, Result
from .starts import Start, Starts, seeds

RULES = ("any", "solve", "end")
HISTORIES = ("native", "online")


def evaluate(model: Union[str, os.PathLike, Agent], env: Any, starts: Union[int, Starts] = 50, *,
             success: Optional[Callable[[Any], bool]] = None,
             goal: Optional[Callable[[Any], Any]] = None,
             image: Optional[Callable[[Any], Any]] = None, budget: int = 50, execute: int = 0,
             history: str = "native", rule: str = "any", name: Optional[str] = None,
             out: Union[str, os.PathLike, None] = None, compact: bool = False,
             progress: Optional[Callable[[int, int], Any]] = None, **agent: Any) -> Result:
    """How often the agent reaches its goals.

    model: a model directory, for which the other keywords (planner=, samples=, ...) make an Agent,
    or an Agent.  env: anything with reset(seed=, options=), step(action) and render() as in
    Gymnasium.  starts: cgs.starts(...), cgs.seeds(...), or how many seeds.

    success(env): whether the goal is reached; without it, info["is_success"].  goal(env): the image
    of the goal, where a start has none; without it, env.render_goal().  image(env): the present
    image; without it, env.render().  Images are of the agent's size, (S, S, 3) bytes.

    budget: most actions of an episode.  execute: action blocks of a plan that are executed before
    the next, 0: all.  history: "native", the planner sees the present image, or "online", all that
    its model has a memory for.  rule: when success counts, after "any" action, each "solve", or at
    the "end".  out: a file of result lines, which is appended to; a result that it has is not
    computed again.  name: what results call the environment."""
    if rule not in RULES:
        raise ValueError(f'rule: "{rule}" is not one of {", ".join(RULES)}')
    if history not in HISTORIES:
        raise ValueError(f'history: "{history}" is not one of {", ".join(HISTORIES)}')
    own = None if isinstance(model, Agent) else Agent(model, **agent)
    if isinstance(model, Agent) and agent:
        raise TypeError(f"an Agent has its settings already: {', '.join(agent)}")
    try:
        loop = _Loop(own or model, env, seeds(starts) if isinstance(starts, int) else starts,
                     success or _says_success, goal or _render_goal, image or _render, budget,
                     execute, history, rule)
        return loop.run(name or _name_of(env), out, compact, progress)
    finally:
        if own:
            own.close()


def _render(env: Any) -> Any:
    return env.render()


def _render_goal(env: Any) -> Any:
    if not hasattr(env, "render_goal"):
        raise TypeError("a start without a goal image: the environment needs render_goal(), or "
                        "evaluate goal=, a function that returns the image")
    return env.render_goal()


def _says_success(env: Any) -> bool:
    raise TypeError('info has no "is_success": evaluate needs success=, a function of the '
                    "environment")


def _name_of(env: Any) -> str:
    spec = getattr(env, "spec", None)
    return str(getattr(env, "id", None) or getattr(spec, "id", None) or type(env).__name__)


class _Loop:
    """The closed loop of src/eval/episode.c for one episode at a time."""

    def __init__(self, agent: Any, env: Any, starts: Starts, success: Callable[[Any], bool],
                 goal: Callable[[Any], Any], image: Callable[[Any], Any], budget: int,
                 execute: int, history: str, rule: str) -> None:
        self.agent, self.env, self.starts = agent, env, starts
        self.success, self.goal, self.image = success, goal, image
        self.budget, self.execute = budget, execute or agent.horizon
        self.history, self.rule = history, rule
        if budget < 1 or not 1 <= self.execute <= agent.horizon:
            raise ValueError(f"{budget} actions, {execute} of {agent.horizon} action blocks: at "
                             "least 1 of each, and no more blocks than a plan has")

    # ---- one episode ---------------------------------------------------------------------------

    def _sees(self, picture: Any, what: str) -> Any:
        side = self.agent.image_size
        shape = getattr(picture, "shape", None)
        if shape is not None and tuple(shape) != (side, side, 3):
            raise ValueError(f"{what}: the image is {'x'.join(map(str, shape))}, the model wants "
                             f"{side}x{side}x3")
        return picture

    def _present(self) -> Any:
        return self._sees(self.image(self.env), "render")

    def _reached(self, info: Dict[str, Any]) -> bool:
        if self.success is _says_success and "is_success" in info:
            return bool(info["is_success"])
        return bool(self.success(self.env))

    def _counts(self, step: int, plan_ends: bool, over: bool) -> bool:
        return (self.rule == "any" or (self.rule == "solve" and plan_ends) or over or
                step == self.budget)

    def episode(self, start: Start, index: int, seed: int) -> Outcome:
        agent, f = self.agent, self.agent.frameskip
        agent.begin(seed, index)
        _, info = self.env.reset(seed=start.seed, options=start.options)
        frames = [self._sees(start.frame, "start") if start.frame is not None else self._present()]
        target = start.goal if start.goal is not None else self.goal(self.env)
        z_goal = agent.encode(self._sees(target, "goal"))[0]
        agent.goal_latent(z_goal)
        blocks: List[Any] = []  # executed between the frames
        first_actions = min(self.execute * f, self.budget)
        step, solves, reached_at, over, seconds = 0, 0, 0, False, 0.0
        planned, first_success, first = math.nan, False, (math.nan, math.nan, 0.0)
        while step < self.budget and not over:
            plan = agent.plan(_together(frames), executed=blocks or None,
                              advanced=self.execute if solves else 0)
            if solves == 0:
                first = (*agent.weigh(), plan.seconds)
            solves, seconds = solves + 1, seconds + plan.seconds
            planned = plan.cost if plan.iterations else planned
            for block in range(self.execute):
                for k in range(f):
                    if step == self.budget or over:
                        break
                    _, _, terminated, truncated, info = self.env.step(plan.actions[block][k])
                    step += 1
                    over = bool(terminated or truncated)
                    holds = self._reached(info)
                    ends = block + 1 == self.execute and k + 1 == f
                    if holds and (step <= first_actions if self.rule == "any"
                                  else step == first_actions):
                        first_success = True
                    if holds and self._counts(step, ends, over):
                        reached_at, over = step, True
                if over or step == self.budget:
                    break
                if self.history == "online" and block >= self.execute - agent.history:
                    self._remember(frames, blocks, plan.actions[block])
            if self.history == "native":
                frames[:] = [] if over or step == self.budget else [self._present()]
        return Outcome(reached_at > 0, reached_at, step, solves, planned,
                       self._distance(z_goal), seconds, first_success, *first)

    def _remember(self, frames: List[Any], blocks: List[Any], block: Any) -> None:
        frames.append(self._present())
        blocks.append(block)
        del frames[:-self.agent.history]
        del blocks[:len(blocks) - len(frames) + 1]

    def _distance(self, z_goal: Any) -> float:
        z, total = self.agent.encode(self._present())[0], 0.0
        for a, b in zip(plain(z), plain(z_goal)):
            total += (a - b) * (a - b)
        return total

    # ---- all of them ---------------------------------------------------------------------------

    def run(self, name: str, out: Union[str, os.PathLike, None], compact: bool,
            progress: Optional[Callable[[int, int], Any]]) -> Result:
        starts = self.starts
        found = _find(out, self._line(name, None, compact)[0]) if out else None
        about = (starts.dataset, starts.dataset_rows, starts.offset, starts.seed,
                 [(r.episode, r.step, r.row) for r in starts.rows])
        if found:
            return Result(json.dumps(found), found["hash"], _successes(found), found["seconds"], [],
                          about)
        outcomes: List[Outcome] = []
        for i, start in enumerate(starts):
            outcomes.append(self.episode(start, i, starts.seed))
            if progress:
                progress(i + 1, len(starts))
        hash, line = self._line(name, outcomes, compact)
        if out:
            _append(out, line)
        return Result(line, hash, [o.success for o in outcomes],
                      sum(o.seconds for o in outcomes) / len(outcomes), outcomes, about)

    def _line(self, name: str, outcomes: Optional[List[Outcome]], compact: bool) -> Tuple[str, str]:
        """The hash, and the line where there are outcomes, from the library."""
        starts, n = self.starts, len(self.starts)
        version = getattr(self.env, "version", 1)
        settings = ResultSettings(
            name.encode(), version if isinstance(version, int) else 1, starts.dataset.encode(),
            starts.dataset_rows, starts.seed, starts.offset, starts.held_out, starts.skip_solved,
            self.history.encode(), self.rule.encode(), self.budget, self.execute, compact, n,
            (StartRow * n)(*starts.rows),
            (OutcomeRow * n)(*[OutcomeRow(*o) for o in outcomes]) if outcomes else None)
        hash, text = (c_char * 17)(), c_void_p()
        call(lib.cgs_result_line(self.agent._open(), byref(settings), hash,
                                 byref(text) if outcomes else None))
        line = ctypes.string_at(text).decode() if outcomes else ""
        lib.cgs_line_free(text)
        return hash.value.decode(), line


def _together(frames: List[Any]) -> Any:
    if all(isinstance(frame, RAW) for frame in frames):
        return b"".join(frames)
    return frames[0] if len(frames) == 1 else frames


# ---- files of result lines -----------------------------------------------------------------------

def _find(path: Union[str, os.PathLike], hash: str) -> Any:
    """The result with this hash.  An unfinished last line (a crash, a full disk) is cut off."""
    if not os.path.exists(path):
        return None
    with open(path, "rb+") as f:
        text = f.read()
        whole = text.rfind(b"\n") + 1
        f.truncate(whole)
    lines = [json.loads(line) for line in text[:whole].splitlines() if line.strip()]
    return next((line for line in lines if line.get("hash") == hash), None)


def _append(path: Union[str, os.PathLike], line: str) -> None:
    with open(path, "ab") as f:
        f.write(line.encode() + b"\n")
        f.flush()
        os.fsync(f.fileno())


def _successes(found: Dict[str, Any]) -> List[bool]:
    outcomes = found["outcomes"]
    if isinstance(outcomes, dict):  # a compact line
        return [digit == "1" for digit in outcomes["success"]]
    return [bool(o["success"]) for o in outcomes]
