"""From scalar graphs to LLVM text and machine code."""
