"""The public names are those of the stubs; all are importable, and so is whatever their functions take and return."""

import ast
import dataclasses
import inspect
import re
import subprocess
import sys
import tomllib
import typing
from collections import defaultdict
from collections.abc import Iterator
from functools import cached_property
from importlib import import_module
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

import pytest

import hybridsim

SOURCE = Path(hybridsim.__file__).parent


def declared_names(file: Path) -> dict[str, str]:
    """Names that a stub, or a module that only re-exports, imports `as` themselves, with their modules."""
    package = ".".join(["hybridsim", *file.parent.relative_to(SOURCE).parts])
    names = {}
    for node in ast.parse(file.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ImportFrom):
            parts = [package] * node.level + [node.module] * (node.module is not None)
            for alias in node.names:
                assert alias.asname == alias.name, f"{file}: {alias.name} is not re-exported"
                names[alias.name] = ".".join(map(str, parts))
    return names


STUBS = {".".join(["hybridsim", *file.parent.relative_to(SOURCE).parts]): file for file in SOURCE.rglob("*.pyi")}
ROOT_NAMES = declared_names(SOURCE / "__init__.pyi")
NAMESPACES = sorted(f"hybridsim.{name}" for name, module in ROOT_NAMES.items() if module == "hybridsim")
FILES = {name: STUBS.get(name, SOURCE / f"{name.rpartition('.')[2]}.py") for name in ["hybridsim", *NAMESPACES]}
NAMES = {namespace: declared_names(file) for namespace, file in FILES.items()}


def public_objects() -> Iterator[tuple[str, str, Any]]:
    """Public functions, classes and constants, with their namespaces and names."""
    for namespace, names in NAMES.items():
        for name in names:
            if f"{namespace}.{name}" not in NAMESPACES:
                yield namespace, name, getattr(import_module(namespace), name)


@pytest.fixture(scope="module")
def public_ids() -> set[int]:
    return {id(value) for _, _, value in public_objects()}


def test_every_stub_is_a_namespace():
    assert set(STUBS) <= set(FILES) and len(STUBS) > 10


@pytest.mark.parametrize("namespace", FILES)
def test_names_are_importable(namespace):
    module = import_module(namespace)
    for name, source in NAMES[namespace].items():
        value = getattr(module, name)
        assert value is getattr(import_module(source), name), name
        assert isinstance(value, ModuleType) == (f"{namespace}.{name}" in NAMESPACES), name
    if namespace in STUBS:
        assert sorted(module.__all__) == sorted(NAMES[namespace]) == sorted(dir(module))
    with pytest.raises(AttributeError, match="nonsense"):
        _ = module.nonsense


def test_star_imports_bind_the_public_names():
    for namespace, names in NAMES.items():
        bound: dict = {}
        exec(f"from {namespace} import *", bound)
        assert bound.keys() - {"__builtins__"} == names.keys()


def test_a_public_object_has_one_name_and_at_most_one_namespace():
    places = defaultdict(set)
    for namespace, name, value in public_objects():
        places[id(value)].add((namespace, name))
    for found in places.values():
        assert len({name for _, name in found}) == 1, found
        assert len({namespace for namespace, _ in found} - {"hybridsim"}) <= 1, found


def test_namespaces_are_light():
    """Listing the public names, as completion does, loads none of them."""
    code = "".join(f"import {name}; dir({name})\n" for name in (*STUBS, "hybridsim.errors"))
    heavy = {"jax", "numpy", "scipy", "equinox", "llvmlite", "mujoco", "pydantic", "matplotlib"}
    program = f"{code}import sys\nprint(*{heavy} & sys.modules.keys())"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert not done.stdout.split()


COLLISIONS = [
    (namespace, name, source)
    for namespace in STUBS
    for name, source in NAMES.get(namespace, {}).items()
    if f"{namespace}.{name}" not in NAMESPACES
    and any((FILES[namespace].parent / path).exists() for path in (f"{name}.py", f"{name}/__init__.py"))
]
"""Public names of objects that are also names of submodules."""


@pytest.mark.parametrize("first", ["import", "access"])
def test_submodules_of_the_same_name_do_not_shadow_functions(first):
    assert ("hybridsim.identify", "solve", "hybridsim.identify.solve") in COLLISIONS
    program = f"""
from importlib import import_module
import sys

def imports():
    for namespace, name, source in {COLLISIONS}:
        exec(f"import {{namespace}}.{{name}}")
        assert sys.modules[f"{{namespace}}.{{name}}"] is import_module(f"{{namespace}}.{{name}}")

def accesses():
    for namespace, name, source in {COLLISIONS}:
        value = getattr(import_module(namespace), name)
        assert value is getattr(import_module(source), name), f"{{namespace}}.{{name}} is {{value}}"

for action in {"(imports, accesses)" if first == "import" else "(accesses, imports, accesses)"}:
    action()
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_the_package_imports_from_the_defining_files():
    """The layers are checked from import statements, which do not show where a lazily loaded name comes from."""
    lazy = [
        f"{file.relative_to(SOURCE)}:{node.lineno}"
        for file in SOURCE.rglob("*.py")
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom) and NAMES.get(node.module or "", {}).keys() & {a.name for a in node.names}
    ]
    assert not lazy


def classes_in(annotation: Any) -> Iterator[type]:
    """Classes of the package in an annotation."""
    if isinstance(annotation, list):  # the parameters of a Callable
        arguments = tuple(annotation)
    else:
        arguments = typing.get_args(annotation)
    if not arguments and isinstance(annotation, type) and annotation.__module__.startswith("hybridsim."):
        yield annotation
    for argument in arguments:
        yield from classes_in(argument)


def member_annotations(kind: type) -> Iterator[tuple[str, Any]]:
    """Annotations of public fields and properties of a class; fields left out of its repr count as private."""
    hidden = (
        {field.name for field in dataclasses.fields(kind) if not field.repr} if dataclasses.is_dataclass(kind) else ()
    )
    yield from ((name, hint) for name, hint in typing.get_type_hints(kind).items() if name not in hidden)
    for name, member in vars(kind).items():
        function = getattr(member, "fget", None) or (member.func if isinstance(member, cached_property) else None)
        if function is not None:
            yield name, typing.get_type_hints(function).get("return")


def test_arguments_and_results_of_public_functions_are_public(public_ids):
    queue = [
        (f"{namespace}.{name}", hint)
        for namespace, name, value in public_objects()
        if isinstance(value, FunctionType)
        for hint in typing.get_type_hints(value).values()
    ]
    private, seen = {}, set()
    while queue:
        path, annotation = queue.pop()
        for kind in set(classes_in(annotation)) - seen:
            seen.add(kind)
            if id(kind) not in public_ids:
                private[f"{kind.__module__}.{kind.__name__}"] = path
            queue += [
                (f"{path} > {kind.__name__}.{member}", hint)
                for member, hint in member_annotations(kind)
                if not member.startswith("_")
            ]
    assert not private and len(seen) > 40


def raised_names(docstring: str | None) -> list[str]:
    """Classes in the `Raises` section of a docstring."""
    section = re.search(r"^Raises:\n((?: .*\n?|\n)+)", inspect.cleandoc(docstring or ""), flags=re.MULTILINE)
    return re.findall(r"^    (\w+):", section.group(1), flags=re.MULTILINE) if section else []


def test_exceptions_of_public_functions_and_methods_are_public():
    errors = NAMES["hybridsim.errors"].keys() | {"ValueError", "TypeError"}
    raised = []
    for namespace, name, value in public_objects():
        functions = vars(value).values() if isinstance(value, type) else [value]
        for function in functions:
            function = getattr(function, "__func__", function)
            if isinstance(function, FunctionType):
                raised += [(f"{namespace}.{name}", error) for error in raised_names(function.__doc__)]
    assert len(raised) > 20 and not [entry for entry in raised if entry[1] not in errors]


def test_type_information_is_shipped():
    wheel = tomllib.loads((SOURCE.parents[1] / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"][
        "wheel"
    ]
    assert wheel == {"packages": ["src/hybridsim"]}
    assert (SOURCE / "py.typed").read_bytes() == b""
