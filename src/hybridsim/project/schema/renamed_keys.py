"""Keys of projects of earlier versions that are now called otherwise or are elsewhere, for error messages."""

RENAMED_KEYS = {
    "start": "initial",
    "tie": "tied",
    "between": "interpolation",
    "starts": "initial_states",
    "start_noise": "initial_state_std",
    "ties": "continuity",
    "most_steps": "max_steps",
    "slope_tolerance": "gradient_tolerance",
    "first_damping": "initial_damping",
    "most_slope": "max_gradient_norm",
    "step": "sample_interval",
    "validation": "held_out",
    "longest_gap": "max_sample_interval",
    "on_disorder": "on_out_of_order",
    "window": "filter_window",
    "upper_layers": "l2",
    "batch": "batch_size",
    "several": "several_runs",
    "allowed": "allowed_folders",
    "lenient": "tolerate",
}
"""New names by old names."""

_FREE_WEIGHTS = 'the weights of network K are free if [[free]] names them, as name = "graft[K]"'
MOVED_KEYS = {
    ("graft", "fit"): _FREE_WEIGHTS,
    ("graft", "l2"): f"{_FREE_WEIGHTS}; it has the key l2",
    ("graft", "limit"): f"{_FREE_WEIGHTS}; it has the key bounds",
    ("blueprint", "fit"): _FREE_WEIGHTS,
    ("blueprint", "l2"): f"{_FREE_WEIGHTS}; it has the key l2",
    ("blueprint", "limit"): f"{_FREE_WEIGHTS}; it has the key bounds",
    ("model", "contact", "floor"): "floor is now a key of [model]",
}
"""Advice for keys that are now elsewhere, by section and key."""
