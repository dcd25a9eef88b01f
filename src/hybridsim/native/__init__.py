"""Native kernels: JAX functions compiled to machine code for the CPU. Contains no physics."""
