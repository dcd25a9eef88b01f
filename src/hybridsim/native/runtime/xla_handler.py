"""Handlers of XLA's foreign function interface (FFI) that call a kernel, in LLVM IR like the kernels themselves.

XLA passes a call frame with pointers to its buffers. A handler is compiled for one set of shapes: it fills in the
kernel's argument record, allocates working memory, and runs the kernel on one thread or several. Offsets are those of
the structures in XLA's `c_api.h`, whose layout is frozen within major version 0.
"""

import ctypes
import itertools
import re
from collections.abc import Sequence
from pathlib import Path

import jax

from hybridsim.native.llvm import machine
from hybridsim.native.llvm.kernel_writer import RECORD_FIELDS
from hybridsim.native.runtime.call import group_bounds

_ARGUMENTS, _RESULTS = 72, 112
"""Offsets of the lists of argument and result buffers in the call frame."""
_DATA = 24
"""Offset of the data pointer in a buffer."""
_handler_ids = itertools.count()
_registered: list = []
"""Libraries of registered handlers, kept alive since XLA may call them until the process exits."""


def register_handler(
    kernel: int,
    constants: dict[str, int],
    arguments: Sequence[str],
    results: Sequence[str],
    *,
    groups: int,
    threads: int,
    work_cells: int,
    state_memory_cells: int,
) -> str:
    """Register a handler with XLA; returns its target name.

    Args:
        kernel: address of the kernel.
        constants: fields of the record that are known at compile time.
        arguments: field of each argument's address.
        results: field of each result's address; other results are not written.
        groups: number of groups of trajectories.
        threads: number of threads.
        work_cells: cells of each thread's working memory.
        state_memory_cells: cells of each thread's memory for states or tangents.
    """
    bounds = group_bounds(groups, constants.get("chunk", 1), threads)
    parts = len(bounds) - 1
    lines = [f"  %rec = alloca [{parts * len(RECORD_FIELDS)} x i64], align 16"]
    lines += [f"  %thread = alloca [{parts} x i64], align 16"]
    size = 8 * parts * (work_cells + state_memory_cells)
    lines += [
        f"  %memory = call ptr @aligned_alloc(i64 128, i64 {size + -size % 128 + 128})",
        "  %failed = icmp eq ptr %memory, null",
        "  br i1 %failed, label %out_of_memory, label %allocated",
        "allocated:",
    ]
    buffers = [(_ARGUMENTS, k) for k in range(len(arguments))] + [(_RESULTS, k) for k in range(len(results))]
    for k, (offset, index) in enumerate(buffers):
        p = f"%p{k}"
        lines += [
            f"  {p}.l = getelementptr i8, ptr %frame, i64 {offset}",
            f"  {p}.list = load ptr, ptr {p}.l, align 8",
            f"  {p}.b = getelementptr ptr, ptr {p}.list, i64 {index}",
            f"  {p}.buffer = load ptr, ptr {p}.b, align 8",
            f"  {p}.d = getelementptr i8, ptr {p}.buffer, i64 {_DATA}",
            f"  {p} = load i64, ptr {p}.d, align 8",
        ]
    pointers = {name: f"%p{k}" for k, name in enumerate([*arguments, *results])}
    for part in range(parts):
        fields = constants | {"first": bounds[part], "last": bounds[part + 1]}
        lines += [
            f"  %w{part}.p = getelementptr i64, ptr %memory, i64 {part * (work_cells + state_memory_cells)}",
            f"  %w{part} = ptrtoint ptr %w{part}.p to i64",
            f"  %s{part} = add i64 %w{part}, {8 * work_cells}",
        ]
        values = {name: str(value) for name, value in fields.items()} | pointers
        values |= {"work": f"%w{part}", "states": f"%s{part}"}
        for k, name in enumerate(RECORD_FIELDS):
            lines += [
                f"  %r{part}.{k} = getelementptr i64, ptr %rec, i64 {part * len(RECORD_FIELDS) + k}",
                f"  store i64 {values.get(name, '0')}, ptr %r{part}.{k}, align 8",
            ]
    for part in range(1, parts):
        lines += [
            f"  %t{part} = getelementptr i64, ptr %thread, i64 {part}",
            f"  %c{part} = call i32 @pthread_create(ptr %t{part}, ptr null, ptr @run, ptr %r{part}.0)",
        ]
    lines += ["  call ptr @run(ptr %r0.0)"]
    for part in range(1, parts):
        # if a thread cannot be created, its groups run on this one
        lines += [
            f"  %create_failed{part} = icmp ne i32 %c{part}, 0",
            f"  br i1 %create_failed{part}, label %self{part}, label %join{part}",
            f"self{part}:",
            f"  call ptr @run(ptr %r{part}.0)",
            f"  br label %next{part}",
            f"join{part}:",
            f"  %id{part} = load i64, ptr %t{part}, align 8",
            f"  call i32 @pthread_join(i64 %id{part}, ptr null)",
            f"  br label %next{part}",
            f"next{part}:",
        ]
    name = f"hybridsim_call_{next(_handler_ids)}"
    text = _TEMPLATE.format(kernel=kernel, version=_api_version(), body="\n".join(lines), name=name)
    library = machine.load([machine.object_code(text, machine.host())], [name])
    capsule = _capsule(library.addresses[name])
    jax.ffi.register_ffi_target(name, capsule, platform="cpu")
    _registered.append((library, capsule))
    return name


def _capsule(address: int):
    new = ctypes.pythonapi.PyCapsule_New
    new.restype = ctypes.py_object
    new.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    return new(address, None, None)


def _api_version() -> int:
    """Minor version of XLA's FFI."""
    header = Path(jax.ffi.include_dir()) / "xla" / "ffi" / "api" / "c_api.h"
    match = re.search(r"XLA_FFI_API_MINOR (\d+)", header.read_text())
    if match is None:
        raise RuntimeError(f"{header} does not define XLA_FFI_API_MINOR")
    return int(match.group(1))


_TEMPLATE = """
declare ptr @aligned_alloc(i64, i64)
declare void @free(ptr)
declare i32 @pthread_create(ptr, ptr, ptr, ptr)
declare i32 @pthread_join(i64, ptr)
@message = private constant [48 x i8] c"a native rollout cannot allocate working memory\\00", align 1

define internal ptr @run(ptr %record) {{
  %kernel = inttoptr i64 {kernel} to ptr
  call void %kernel(ptr %record)
  ret ptr null
}}

define ptr @{name}(ptr %frame) {{
  %e.p = getelementptr i8, ptr %frame, i64 8
  %extension = load ptr, ptr %e.p, align 8
  %is_call = icmp eq ptr %extension, null
  br i1 %is_call, label %call, label %metadata
metadata:
  %m.p = getelementptr i8, ptr %extension, i64 24
  %m = load ptr, ptr %m.p, align 8
  %major = getelementptr i8, ptr %m, i64 24
  store i32 0, ptr %major, align 4
  %minor = getelementptr i8, ptr %m, i64 28
  store i32 {version}, ptr %minor, align 4
  ret ptr null
call:
{body}
  call void @free(ptr %memory)
  ret ptr null
out_of_memory:
  ; an error of kind RESOURCE_EXHAUSTED: its size, no extension, message, code
  %error = alloca [4 x i64], align 16
  store i64 32, ptr %error, align 8
  %error.e = getelementptr i64, ptr %error, i64 1
  store i64 0, ptr %error.e, align 8
  %error.m = getelementptr i64, ptr %error, i64 2
  store ptr @message, ptr %error.m, align 8
  %error.c = getelementptr i64, ptr %error, i64 3
  store i64 8, ptr %error.c, align 8
  %api.p = getelementptr i8, ptr %frame, i64 16
  %api = load ptr, ptr %api.p, align 8
  %create.p = getelementptr i8, ptr %api, i64 48
  %create = load ptr, ptr %create.p, align 8
  %result = call ptr %create(ptr %error)
  ret ptr %result
}}
"""
