"""Codes of all problems: short stable identifiers, for scripts and for the option `tolerate`."""

_TOPICS = {
    "actuator": "joint",
    "armature": "invalid",
    "attribute": "missing unknown",
    "axis": "zero",
    "base": "world",
    "contact": "compliance damping friction restitution stiffness",
    "convert": "format",
    "damping": "invalid",
    "data": (
        "ambiguous array channel constant duplicate_channel duplicate_column empty encoding estimated file format gap "
        "group jump length link missing_column missing_time nan noise object outlier package ragged range run series "
        "size split text time_duplicate time_order time_unit uneven unit unwrap window"
    ),
    "effort_limit": "invalid",
    "element": "repeated unknown",
    "export": "inertial place rotation structure verify",
    "file": "compressed directory missing special unreadable unwritable",
    "frame": "body",
    "friction": "invalid",
    "friction_width": "invalid",
    "geom": "body pair size surface",
    "geometry": "empty missing unknown",
    "gravity": "nonfinite",
    "home": "mimic quaternion size unknown",
    "inertia": "asymmetric indefinite triangle zero",
    "inertial": "missing no_geometry nonfinite",
    "joint": "free_not_root link no_link singular type",
    "limit": "effort kind locked missing nan order velocity",
    "limit_damping": "invalid",
    "limit_stiffness": "invalid",
    "mass": "massless_subtree negative zero_with_inertia",
    "mesh": "empty missing open outside package scheme unusable",
    "mimic": "chain cycle fixed kind range self unknown",
    "mjcf": "attach attribute element include keyword plugin reference refused too_large warning",
    "name": "duplicate missing world",
    "number": "count invalid nonfinite",
    "option": "base built_in inertia packages tolerate",
    "placement": "nonfinite",
    "project": "blueprint command conflict file free graft key missing model noise outside syntax tap times value",
    "rest": "quaternion shape",
    "stiffness": "invalid kind",
    "stribeck_friction": "invalid",
    "stribeck_velocity": "invalid",
    "timestep": "invalid",
    "tree": "empty loop order parent roots static two_parents",
    "units": "density inertia length mass mesh",
    "urdf": "ignored size xacro",
    "write": "depth joint name nonfinite rotation",
    "xml": "doctype empty encoding format size syntax",
}

CODES = frozenset(f"{topic}.{name}" for topic, names in _TOPICS.items() for name in names.split())
"""All codes except those of `OPEN_TOPICS`."""

OPEN_TOPICS = ("unsupported.",)
"""Prefixes of codes that end with a name from the file, such as `unsupported.tendon`."""
