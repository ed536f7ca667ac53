"""Training, with progress, interruption and resume."""

from __future__ import annotations

import os
import signal
import threading
from contextlib import contextmanager
from ctypes import byref
from typing import Any, Callable, Iterator, List, Mapping, NamedTuple, Optional, Union

from ._declarations import TRAIN, TrainOptions, TrainProgress
from ._library import call, lib
from .agent import encoded, setting_list


class Validation(NamedTuple):
    """Errors on held-out windows; a model that has learned is below both others."""
    prediction: float
    mean: float  # of predicting the mean latent
    copy: float  # of predicting the last latent


class TrainStep(NamedTuple):
    step: int
    total: int
    loss: float
    prediction: float
    rate: float
    frames_per_second: float
    validation: Optional[Validation]  # after some updates


def train(data: Union[str, os.PathLike], out: Union[str, os.PathLike], *,
          size: Optional[str] = None, method: Optional[str] = None,
          init: Union[str, os.PathLike, None] = None, resume: bool = False, force: bool = False,
          settings: Optional[Mapping[str, Any]] = None,
          progress: Optional[Callable[[TrainStep], Any]] = None, device: Optional[str] = None,
          precision: Optional[str] = None, threads: int = 0,
          cache: Union[str, os.PathLike, None] = None) -> bool:
    """Trains a model on a dataset, as `cgs train` does; `out` becomes a model directory.

    size: "paper" or "small".  init: a model to begin with.  settings: {"train.updates": 1000, ...},
    as `cgs help settings` lists them.  progress is called after every update; where it returns
    False the run is saved and stops, and train returns False; True: it is finished.

    Ctrl-C saves, too, and raises KeyboardInterrupt, as does any exception of progress.  The same
    call with resume=True continues, to the same bits as if it had never stopped."""
    words = setting_list(settings)
    options = TrainOptions(os.fsencode(data), os.fsencode(out), encoded(size), encoded(method),
                           None if init is None else os.fsencode(init),
                           None if cache is None else os.fsencode(cache), encoded(device),
                           encoded(precision), threads, resume, force, words, len(words))
    raised: List[BaseException] = []
    stopped: List[bool] = []

    def tell(_: Any, p: Any) -> int:
        if raised:
            return 0
        try:
            if progress and progress(_step(p.contents)) is False:
                stopped.append(True)
        except BaseException as e:  # exceptions cannot cross C
            raised.append(e)
        return int(not stopped and not raised)

    with _interrupts_into(raised):
        status = lib.cgs_train(byref(options), TRAIN(tell), None)
    if raised:
        raise raised[0]
    if stopped:
        return False
    call(status)
    return True


def _step(p: TrainProgress) -> TrainStep:
    seen = Validation(p.valid_prediction, p.valid_mean, p.valid_copy) if p.validated else None
    return TrainStep(p.step, p.total, p.loss, p.prediction, p.rate, p.frames_per_second, seen)


@contextmanager
def _interrupts_into(raised: List[BaseException]) -> Iterator[None]:
    """Ctrl-C is kept until the library has saved: in a callback Python would only print it."""
    usual = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if not usual or threading.current_thread() is not threading.main_thread():
        yield
        return
    signal.signal(signal.SIGINT, lambda *_: raised.append(KeyboardInterrupt()))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
