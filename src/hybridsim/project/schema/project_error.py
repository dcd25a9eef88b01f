"""Error of an invalid project, with the lines of all problems."""

from hybridsim.core.errors import ProblemsError


class ProjectError(ProblemsError):
    """An invalid project; carries the problems of its model and data files as well."""
