"""Tables of TOML files derived from the classes that they configure: same settings, defaults and documentation."""

import ast
import inspect
import re
import textwrap
from collections.abc import Collection, Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import cache
from itertools import pairwise
from types import NoneType, UnionType
from typing import Annotated, Any, ClassVar, Literal, Union, get_args, get_origin, get_type_hints

from pydantic import Field, create_model

from hybridsim.core.specification import Choice, StrictTable

HIDDEN = {"is_setting": False}
"""Metadata of fields that are no settings: a component derives them itself."""
SCALARS = (bool, int, float, str, NoneType)


class ComponentTable(StrictTable):
    """Settings of a component."""

    component: ClassVar[type]
    """The class that it configures."""

    @property
    def settings(self) -> dict[str, Any]:
        """Settings that the user specified, as arguments of the component."""
        return {key: getattr(self, key) for key in type(self).model_fields if key in self.model_fields_set}


@cache
def table_of(component: type, omit: Collection[str] = ()) -> type[ComponentTable]:
    """Table with the settings of a component, from the signature of its constructor.

    Args:
        component: the class.
        omit: arguments that are no settings.
    """
    hidden = derived_fields(component)
    hints, documentation = get_type_hints(component.__init__, include_extras=True), setting_documentation(component)
    settings: dict[str, Any] = {}
    for name, parameter in inspect.signature(component).parameters.items():
        if name in hidden or name in omit:
            continue
        default = ... if parameter.default is inspect.Parameter.empty else parameter.default
        try:
            annotation = toml_annotation(hints[name])
        except TypeError:
            if default is ...:
                raise
            continue  # its default is the only value that a file can use
        settings[name] = (annotation, Field(default, description=documentation.get(name, "")))
    table = create_model(f"{component.__name__}Table", __base__=ComponentTable, __doc__=component.__doc__, **settings)
    table.component = component
    return table


def derived_fields(component: type) -> frozenset[str]:
    """Fields that a component derives itself; they are neither settings nor parameters."""
    own_fields = fields(component) if is_dataclass(component) else ()
    return frozenset(field.name for field in own_fields if not field.metadata.get("is_setting", True))


def toml_annotation(annotation: Any) -> Any:
    """Annotation of the values in a TOML file that stand for values of a Python annotation."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        base = annotation if any(isinstance(entry, Choice) for entry in arguments[1:]) else None
        return base or Annotated[toml_annotation(arguments[0]), *arguments[1:]]
    if annotation in SCALARS or annotation is None or origin is Literal:
        return annotation
    if origin in (Union, UnionType):
        parts = dict.fromkeys(toml_annotation(part) for part in arguments)
        return Union[tuple(parts)]  # noqa: UP007 - not known statically
    if origin is tuple:
        return tuple[tuple(part if part is ... else toml_annotation(part) for part in arguments)]
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return dict[str, toml_annotation(arguments[1])]
    if isinstance(origin, type) and issubclass(origin, Sequence):
        return tuple[toml_annotation(arguments[0]), ...]
    if annotation is Sequence or annotation.__module__.partition(".")[0] in ("jax", "jaxlib", "jaxtyping", "numpy"):
        return float | tuple[float, ...]
    raise TypeError(f"a TOML file has no values of type {annotation}")


def setting_documentation(cls: type) -> dict[str, str]:
    """Documentation of the settings of a class: docstrings of its fields, or the `Args` section of its constructor."""
    documentation: dict[str, str] = {}
    for base in reversed(cls.__mro__):
        try:
            body = ast.parse(textwrap.dedent(inspect.getsource(base))).body[0]
        except (OSError, TypeError):
            continue  # built in, or made by another library
        statements = body.body if isinstance(body, ast.ClassDef) else []
        for field, text in pairwise(statements):
            if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and _text(text):
                documentation[field.target.id] = _text(text)
    arguments = inspect.cleandoc(cls.__init__.__doc__ or "").partition("Args:\n")[2].partition("\n\n")[0]
    for name, text in re.findall(r"^    (\w+): (.*(?:\n      .*)*)", arguments, re.MULTILINE):
        documentation[name] = text[:1].upper() + re.sub(r"\s+", " ", text[1:])
    return documentation


def _text(statement: ast.stmt) -> str:
    """Text of a statement that is a docstring; empty if it is not."""
    value = statement.value if isinstance(statement, ast.Expr) else None
    return inspect.cleandoc(value.value) if isinstance(value, ast.Constant) and isinstance(value.value, str) else ""
