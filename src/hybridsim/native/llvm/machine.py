"""Target processors, compilation of LLVM IR to object code, and linking of object code into the process."""

import itertools
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cache

import llvmlite.binding as llvm

MAX_SMALL_KERNEL_NODES = 800
"""Maximum number of nodes of the graph of a small kernel."""


@dataclass(frozen=True)
class CpuTarget:
    """A processor to generate code for."""

    triple: str
    cpu: str
    features: str
    lanes: int
    """Trajectories per vector of a small kernel: at least two registers, because independent chains hide latency."""
    fma: bool
    """Whether it has fused multiply-add."""
    register_width: int
    """Doubles in a vector register."""

    def lanes_for(self, nodes: int) -> int:
        """Trajectories per vector of a kernel; more lanes would raise the register pressure of a large one."""
        return self.lanes if nodes <= MAX_SMALL_KERNEL_NODES else min(self.lanes, self.register_width)

    @property
    def key(self) -> str:
        """Identifier of the code generated for this target."""
        return f"{self.triple} {self.cpu} {self.features} {self.lanes} {self.register_width} {self.fma}"


@cache
def host() -> CpuTarget:
    """The processor of this machine."""
    _initialize()
    features = llvm.get_host_cpu_features()
    register_width = 8 if features.get("avx512f") else 4 if features.get("avx") else 2
    triple = llvm.get_process_triple()
    fma = bool(features.get("fma")) or triple.startswith(("aarch64", "arm64"))
    lanes = max(2 * register_width, 8)
    return CpuTarget(triple, llvm.get_host_cpu_name(), features.flatten(), lanes, fma, register_width)


AVX2 = CpuTarget("x86_64-unknown-linux-gnu", "haswell", "", 8, True, 4)
"""x86 processors with AVX2 and FMA, from Haswell (2013) on."""
PLAIN_X86 = CpuTarget("x86_64-unknown-linux-gnu", "x86-64", "", 4, False, 2)
"""Every 64-bit x86 processor."""
ARM = CpuTarget("aarch64-unknown-linux-gnu", "generic", "", 4, True, 2)
"""64-bit ARM."""


def object_code(text: str, target: CpuTarget) -> bytes:
    """Compile LLVM IR; graphs are optimized before emission, so only instruction selection is left."""
    _initialize()
    module = llvm.parse_assembly(text, llvm.create_context())
    module.triple = target.triple
    machine = _machine(target)
    module.data_layout = str(machine.target_data)
    return machine.emit_object(module)


def assembly(text: str, target: CpuTarget) -> str:
    """Assembly of LLVM IR, for inspection."""
    _initialize()
    module = llvm.parse_assembly(text, llvm.create_context())
    module.triple = target.triple
    return _machine(target).emit_assembly(module)


def entry_point(name: str, target: CpuTarget) -> tuple[str, str]:
    """Name and IR of a wrapper that calls a function with a pointer argument in the default IEEE 754 mode.

    XLA sets the processor to flush denormals to zero, and so may other libraries for the whole process. The result of
    a call must not depend on that.
    """
    entry = f"{name}_entry"
    if target.triple.startswith("x86_64"):
        declarations = "declare void @llvm.x86.sse.stmxcsr(ptr)\ndeclare void @llvm.x86.sse.ldmxcsr(ptr)\n"
        before = [
            "%old = alloca i32, align 4",
            "%new = alloca i32, align 4",
            "call void @llvm.x86.sse.stmxcsr(ptr %old)",
            f"store i32 {_MXCSR}, ptr %new, align 4",
            "call void @llvm.x86.sse.ldmxcsr(ptr %new)",
        ]
        after = ["call void @llvm.x86.sse.ldmxcsr(ptr %old)"]
    elif target.triple.startswith(("aarch64", "arm64")):
        declarations = "declare i64 @llvm.aarch64.get.fpcr()\ndeclare void @llvm.aarch64.set.fpcr(i64)\n"
        before = ["%old = call i64 @llvm.aarch64.get.fpcr()", "call void @llvm.aarch64.set.fpcr(i64 0)"]
        after = ["call void @llvm.aarch64.set.fpcr(i64 %old)"]
    else:
        declarations, before, after = "", [], []
    lines = "\n  ".join([*before, f"call void @{name}(ptr %record)", *after, "ret void"])
    return entry, f"{declarations}\ndefine void @{entry}(ptr %record) {{\n  {lines}\n}}\n"


_MXCSR = 0x1F80
"""Default mode of a process: round to nearest, exceptions masked, denormals not flushed."""


@dataclass
class Library:
    """Linked functions, by name; they live as long as this object."""

    addresses: dict[str, int]
    _tracker: object = field(repr=False)


def load(images: Iterable[bytes], names: Iterable[str]) -> Library:
    """Link object code into this process.

    Args:
        images: object code, which may call across images and into the C library.
        names: functions to look up.
    """
    builder = llvm.JITLibraryBuilder().add_current_process()
    for image in images:
        builder.add_object_img(image)
    names = list(names)
    for name in names:
        builder.export_symbol(name)
    tracker = builder.link(_linker(), f"hybridsim_{next(_library_ids)}")
    return Library({name: tracker[name] for name in names}, tracker)


_library_ids = itertools.count()


@cache
def _initialize() -> None:
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()


@cache
def _linker():
    _initialize()
    # RuntimeDyld may place sections too far apart for the small code model once a lot of memory is in use
    return llvm.create_lljit_compiler(use_jit_link=True)


def _machine(target: CpuTarget):
    # a higher optimization level takes twice as long to compile and yields no faster code
    return llvm.Target.from_triple(target.triple).create_target_machine(
        cpu=target.cpu, features=target.features, opt=1, reloc="pic", codemodel="small"
    )
