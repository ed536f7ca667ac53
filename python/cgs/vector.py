"""Several environments that step together, as Gymnasium's vector environments."""

from __future__ import annotations

import math
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple, Union

from ._gym import VectorEnv, array, box, next_step_reset, stacked
from ._numbers import plain
from .sim import Sim


class VectorSim(VectorEnv):
    """`num_envs` times Sim, with its keywords.

    reset(seed=n) gives environment i the seed n + i.  An episode that has ended is reset by the
    next step, which ignores its action (Gymnasium's AutoresetMode.NEXT_STEP)."""
    render_mode = "rgb_array"

    def __init__(self, id: str, num_envs: int, **keywords: Any) -> None:
        if num_envs < 1:
            raise ValueError(f"num_envs: wants at least 1, got {num_envs}")
        self.metadata = {**Sim.metadata, "autoreset_mode": next_step_reset()}
        self.num_envs = num_envs
        self.envs: List[Sim] = [Sim(id, **keywords) for _ in range(num_envs)]
        one = self.envs[0]
        self.single_action_space, self.single_observation_space = one.action_space, one.observation_space
        self.action_space = box(-one.action_range, one.action_range, (num_envs, one.action_dim),
                                "float64")
        pixels = keywords.get("observation") == "pixels"
        shape = (num_envs, *one.observation_space.shape)
        self.observation_space = box(0, 255, shape, "uint8") if pixels else \
            box(-math.inf, math.inf, shape, "float64")
        self._ended = [False] * num_envs

    def reset(self, *, seed: Union[int, Sequence[Optional[int]], None] = None,
              options: Optional[Mapping[str, Any]] = None) -> Tuple[Any, Dict[str, Any]]:
        if seed is None or isinstance(seed, int):
            seeds: List[Optional[int]] = [None if seed is None else seed + i
                                          for i in range(self.num_envs)]
        else:
            seeds = list(seed)
        self._ended = [False] * self.num_envs
        made = [env.reset(s, options) for env, s in zip(self.envs, seeds)]
        return stacked([o for o, _ in made]), _together([i for _, i in made])

    def step(self, actions: Any) -> Tuple[Any, Any, Any, Any, Dict[str, Any]]:
        actions = plain(actions)
        if len(actions) != self.num_envs:
            raise ValueError(f"actions: {len(actions)} for {self.num_envs} environments")
        rows = []
        for i, env in enumerate(self.envs):
            if self._ended[i]:
                observation, info = env.reset()
                rows.append((observation, 0.0, False, False, info))
            else:
                rows.append(env.step(actions[i]))
        observations, rewards, terminated, truncated, infos = (list(c) for c in zip(*rows))
        self._ended = [a or b for a, b in zip(terminated, truncated)]
        return (stacked(observations), array(rewards, "float64"), array(terminated, "bool"),
                array(truncated, "bool"), _together(infos))

    def render(self) -> List[Any]:
        return [env.render() for env in self.envs]

    def close(self, **_: Any) -> None:
        for env in self.envs:
            env.close()


def _together(infos: List[Dict[str, Any]]) -> Dict[str, Any]:
    """Every entry stacked, beside "_NAME", which says who has it: all."""
    out: Dict[str, Any] = {}
    for name in infos[0]:
        values = [info[name] for info in infos]
        out[name] = array(values, "bool") if isinstance(values[0], bool) else stacked(values)
        out["_" + name] = array([True] * len(infos), "bool")
    return out
