"""The structures and functions of cgs.h."""

from __future__ import annotations

from ctypes import (CFUNCTYPE, POINTER, Structure, c_char, c_char_p, c_double, c_float, c_int,
                    c_int64, c_uint8, c_uint64, c_void_p)
from typing import Any, List, Tuple


class AgentOptions(Structure):
    _fields_ = [("device", c_char_p), ("precision", c_char_p), ("threads", c_int),
                ("planner", c_char_p), ("samples", c_int), ("iters", c_int), ("horizon", c_int),
                ("tau", c_double), ("seed", c_uint64), ("settings", POINTER(c_char_p)),
                ("setting_count", c_int)]


class AgentInfo(Structure):
    _fields_ = [("image_size", c_int), ("width", c_int), ("history", c_int),
                ("action_dim", c_int), ("frameskip", c_int), ("horizon", c_int),
                ("env", c_char_p), ("method", c_char_p)]


class Observation(Structure):
    _fields_ = [("frames", c_void_p), ("count", c_int), ("executed", c_void_p),
                ("advanced", c_int)]


class PlanReport(Structure):
    _fields_ = [("seconds", c_double), ("iterations", c_int), ("cut", c_int), ("cost", c_double)]


class SimInfo(Structure):
    _fields_ = [("id", c_char_p), ("summary", c_char_p), ("success", c_char_p),
                ("version", c_int), ("state_dim", c_int), ("action_dim", c_int),
                ("action_range", c_double)]


COLUMN_RANK = 4
# of cgs_column_type, in its order
COLUMN_TYPES = ("other", "f32", "f64", "i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64")


class ColumnSpec(Structure):
    _fields_ = [("name", c_char_p), ("dtype", c_int), ("rank", c_int),
                ("shape", c_int64 * COLUMN_RANK)]


class DatasetInfo(Structure):
    _fields_ = [("rows", c_int64), ("episodes", c_int), ("columns", c_int), ("height", c_int),
                ("width", c_int), ("action_dim", c_int)]


class StartRow(Structure):
    _fields_ = [("episode", c_int64), ("step", c_int64), ("row", c_int64)]


class Interval(Structure):
    _fields_ = [("low", c_double), ("high", c_double)]


class PairedCounts(Structure):
    _fields_ = [("n", c_int), ("both", c_int), ("only_a", c_int), ("only_b", c_int),
                ("neither", c_int), ("difference", c_double), ("newcombe", Interval),
                ("bootstrap", Interval), ("p", c_double)]


class OutcomeRow(Structure):
    _fields_ = [("success", c_int), ("first", c_int), ("actions", c_int), ("solves", c_int),
                ("planned", c_float), ("reached", c_float), ("seconds", c_double),
                ("first_success", c_int), ("first_cost", c_float), ("first_size", c_float),
                ("first_seconds", c_double)]


class ResultSettings(Structure):
    _fields_ = [("env", c_char_p), ("env_version", c_int), ("dataset", c_char_p),
                ("dataset_rows", c_int64), ("seed", c_uint64), ("goal_offset", c_int),
                ("held_out", c_int), ("skip_solved", c_int), ("history", c_char_p),
                ("success", c_char_p), ("budget", c_int), ("execute", c_int), ("compact", c_int),
                ("count", c_int), ("start", POINTER(StartRow)), ("outcome", POINTER(OutcomeRow))]


class TrainOptions(Structure):
    _fields_ = [("data", c_char_p), ("out", c_char_p), ("size", c_char_p), ("method", c_char_p),
                ("init", c_char_p), ("cache", c_char_p), ("device", c_char_p),
                ("precision", c_char_p), ("threads", c_int), ("resume", c_int), ("force", c_int),
                ("settings", POINTER(c_char_p)), ("setting_count", c_int)]


class TrainProgress(Structure):
    _fields_ = [("step", c_uint64), ("total", c_uint64), ("loss", c_double),
                ("prediction", c_double), ("rate", c_double), ("frames_per_second", c_double),
                ("validated", c_int), ("valid_prediction", c_double), ("valid_mean", c_double),
                ("valid_copy", c_double)]


COST = CFUNCTYPE(c_int, c_void_p, POINTER(c_float), POINTER(c_float), c_int, POINTER(c_float))
FOUND = CFUNCTYPE(None, c_void_p, c_int, c_char_p)
SKIP = CFUNCTYPE(c_int, c_void_p, POINTER(StartRow))
TRAIN = CFUNCTYPE(c_int, c_void_p, POINTER(TrainProgress))

# name, result, arguments
FUNCTIONS: List[Tuple[str, Any, List[Any]]] = [
    ("cgs_last_error", c_char_p, []),
    ("cgs_status_name", c_char_p, [c_int]),
    ("cgs_version", c_char_p, []),
    ("cgs_agent_create", c_int, [POINTER(c_void_p), c_char_p, POINTER(AgentOptions)]),
    ("cgs_agent_destroy", None, [c_void_p]),
    ("cgs_agent_describe", AgentInfo, [c_void_p]),
    ("cgs_agent_encode", c_int, [c_void_p, c_void_p, c_int, c_void_p]),
    ("cgs_agent_goal_image", c_int, [c_void_p, c_void_p]),
    ("cgs_agent_goal_latent", c_int, [c_void_p, c_void_p]),
    ("cgs_agent_goal_cost", c_int, [c_void_p, COST, c_void_p]),
    ("cgs_agent_plan", c_int, [c_void_p, POINTER(Observation), c_double, c_void_p,
                               POINTER(PlanReport)]),
    ("cgs_agent_begin", None, [c_void_p, c_uint64, c_uint64]),
    ("cgs_agent_weigh", c_int, [c_void_p, POINTER(c_double), POINTER(c_double)]),
    ("cgs_planner_count", c_int, []),
    ("cgs_planner_id", c_char_p, [c_int]),
    ("cgs_sim_count", c_int, []),
    ("cgs_sim_id", c_char_p, [c_int]),
    ("cgs_env_load", c_int, [c_char_p, POINTER(c_char_p)]),
    ("cgs_sim_create", c_int, [POINTER(c_void_p), c_char_p]),
    ("cgs_sim_destroy", None, [c_void_p]),
    ("cgs_sim_describe", SimInfo, [c_void_p]),
    ("cgs_sim_reset", c_int, [c_void_p, c_uint64]),
    ("cgs_sim_set_state", c_int, [c_void_p, c_void_p, c_int]),
    ("cgs_sim_set_goal", c_int, [c_void_p, c_void_p, c_int]),
    ("cgs_sim_state", POINTER(c_double), [c_void_p]),
    ("cgs_sim_goal", POINTER(c_double), [c_void_p]),
    ("cgs_sim_step", c_int, [c_void_p, c_void_p, c_int]),
    ("cgs_sim_success", c_int, [c_void_p]),
    ("cgs_sim_render", c_int, [c_void_p, c_int, c_void_p]),
    ("cgs_writer_create", c_int, [POINTER(c_void_p), c_char_p, POINTER(ColumnSpec), c_int]),
    ("cgs_writer_destroy", None, [c_void_p]),
    ("cgs_writer_text", c_int, [c_void_p, c_char_p, c_char_p]),
    ("cgs_writer_integer", c_int, [c_void_p, c_char_p, c_uint64]),
    ("cgs_writer_real", c_int, [c_void_p, c_char_p, c_double]),
    ("cgs_writer_begin", c_int, [c_void_p, POINTER(c_int64)]),
    ("cgs_writer_add", c_int, [c_void_p, c_int, POINTER(c_void_p)]),
    ("cgs_writer_finish", c_int, [c_void_p]),
    ("cgs_dataset_open", c_int, [POINTER(c_void_p), c_char_p]),
    ("cgs_dataset_close", None, [c_void_p]),
    ("cgs_dataset_describe", DatasetInfo, [c_void_p]),
    ("cgs_dataset_column", ColumnSpec, [c_void_p, c_int]),
    ("cgs_dataset_episode", c_int, [c_void_p, c_int, POINTER(c_int64)]),
    ("cgs_dataset_read_rows_f64", c_int, [c_void_p, c_char_p, c_int64, c_int, c_void_p]),
    ("cgs_dataset_read_pixels", c_int, [c_void_p, c_int64, c_int, c_void_p]),
    ("cgs_dataset_judge", c_int, [c_char_p, c_char_p, FOUND, c_void_p]),
    ("cgs_dataset_starts", c_int, [c_void_p, c_int, c_int, c_uint64, c_void_p, SKIP, c_void_p,
                                   POINTER(StartRow)]),
    ("cgs_wilson", Interval, [c_int, c_int]),
    ("cgs_compare_paired", c_int, [POINTER(c_uint8), POINTER(c_uint8), c_int, c_int, c_uint64,
                                   POINTER(PairedCounts)]),
    ("cgs_result_line", c_int, [c_void_p, POINTER(ResultSettings), c_char * 17,
                                POINTER(c_void_p)]),
    ("cgs_line_free", None, [c_void_p]),
    ("cgs_train", c_int, [POINTER(TrainOptions), TRAIN, c_void_p]),
]
