"""The machine: which processor to generate code for, and turning LLVM text into object code and into functions."""

import itertools
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cache

import llvmlite.binding as llvm

SMALL_KERNEL = 800
"""Nodes up to which a kernel counts as small."""


@dataclass(frozen=True)
class CpuTarget:
    """A processor to generate code for."""

    triple: str
    cpu: str
    features: str
    lanes: int
    """Trajectories per vector of a small kernel: twice a register, because two chains of operations wait less."""
    fma: bool
    """Has it fused multiply-add?"""
    register: int
    """Numbers in a vector register."""

    def lanes_for(self, nodes: int) -> int:
        """Trajectories per vector of a kernel; a large one needs its registers for values, not for more lanes."""
        return self.lanes if nodes <= SMALL_KERNEL else min(self.lanes, self.register)

    @property
    def key(self) -> str:
        """What distinguishes its code from that of other processors."""
        return f"{self.triple} {self.cpu} {self.features} {self.lanes} {self.register} {self.fma}"


@cache
def host() -> CpuTarget:
    """The processor that this program runs on."""
    _initialize()
    features = llvm.get_host_cpu_features()
    register = 8 if features.get("avx512f") else 4 if features.get("avx") else 2
    triple = llvm.get_process_triple()
    fma = bool(features.get("fma")) or triple.startswith(("aarch64", "arm64"))
    return CpuTarget(triple, llvm.get_host_cpu_name(), features.flatten(), max(2 * register, 8), fma, register)


AVX2 = CpuTarget("x86_64-unknown-linux-gnu", "haswell", "", 8, True, 4)
"""Any x86 processor since 2013."""
PLAIN_X86 = CpuTarget("x86_64-unknown-linux-gnu", "x86-64", "", 4, False, 2)
"""Every 64-bit x86 processor."""
ARM = CpuTarget("aarch64-unknown-linux-gnu", "generic", "", 4, True, 2)
"""64-bit ARM."""


def object_code(text: str, target: CpuTarget) -> bytes:
    """Compile LLVM text; graphs come optimised already and only need instructions selected."""
    _initialize()
    module = llvm.parse_assembly(text, llvm.create_context())
    module.triple = target.triple
    machine = _machine(target)
    module.data_layout = str(machine.target_data)
    return machine.emit_object(module)


def assembly(text: str, target: CpuTarget) -> str:
    """The assembler that LLVM text becomes, to look at."""
    _initialize()
    module = llvm.parse_assembly(text, llvm.create_context())
    module.triple = target.triple
    return _machine(target).emit_assembly(module)


def entry_point(name: str, target: CpuTarget) -> tuple[str, str]:
    """The name and text of a function that calls another of one pointer in the floating-point mode of IEEE 754.

    XLA rounds denormal numbers to zero, which is a mode of the processor; others may set it for a whole program. The
    same call must have the same result everywhere.
    """
    own = f"{name}_entry"
    if target.triple.startswith("x86_64"):
        declared = "declare void @llvm.x86.sse.stmxcsr(ptr)\ndeclare void @llvm.x86.sse.ldmxcsr(ptr)\n"
        before = [
            "%old = alloca i32, align 4",
            "%new = alloca i32, align 4",
            "call void @llvm.x86.sse.stmxcsr(ptr %old)",
            f"store i32 {_MXCSR}, ptr %new, align 4",
            "call void @llvm.x86.sse.ldmxcsr(ptr %new)",
        ]
        after = ["call void @llvm.x86.sse.ldmxcsr(ptr %old)"]
    elif target.triple.startswith(("aarch64", "arm64")):
        declared = "declare i64 @llvm.aarch64.get.fpcr()\ndeclare void @llvm.aarch64.set.fpcr(i64)\n"
        before = ["%old = call i64 @llvm.aarch64.get.fpcr()", "call void @llvm.aarch64.set.fpcr(i64 0)"]
        after = ["call void @llvm.aarch64.set.fpcr(i64 %old)"]
    else:
        declared, before, after = "", [], []
    lines = "\n  ".join([*before, f"call void @{name}(ptr %record)", *after, "ret void"])
    return own, f"{declared}\ndefine void @{own}(ptr %record) {{\n  {lines}\n}}\n"


_MXCSR = 0x1F80
"""The mode that programs start with: round to nearest, no traps, denormal numbers kept."""


@dataclass
class Library:
    """Functions in memory, by name; they live as long as this object."""

    addresses: dict[str, int]
    _tracker: object = field(repr=False)


def load(images: Iterable[bytes], names: Iterable[str]) -> Library:
    """Link object code into this process.

    Args:
        images: object code; it may call across images and into the C library.
        names: functions whose addresses are wanted.
    """
    builder = llvm.JITLibraryBuilder().add_current_process()
    for image in images:
        builder.add_object_img(image)
    names = list(names)
    for name in names:
        builder.export_symbol(name)
    tracker = builder.link(_linker(), f"hybridsim_{next(_numbers)}")
    return Library({name: tracker[name] for name in names}, tracker)


_numbers = itertools.count()


@cache
def _initialize() -> None:
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()


@cache
def _linker():
    _initialize()
    # the older linker places sections too far apart for small-model code once much memory is in use
    return llvm.create_lljit_compiler(use_jit_link=True)


def _machine(target: CpuTarget):
    # a higher level of optimisation takes twice as long and gives the same speed
    return llvm.Target.from_triple(target.triple).create_target_machine(
        cpu=target.cpu, features=target.features, opt=1, reloc="pic", codemodel="small"
    )
