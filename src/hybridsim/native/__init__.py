"""Native kernels: JAX functions compiled to machine code for the CPU. No physics lives here."""
