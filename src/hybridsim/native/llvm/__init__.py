"""LLVM back-end: scalar graphs to LLVM IR and machine code."""
