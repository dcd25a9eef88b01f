"""`hybridsim cache`: size and removal of the cached kernels."""

from typing import Annotated, Literal

import tyro

from hybridsim.cli.output import print_json, say


def cache(action: Annotated[Literal["info", "clear"], tyro.conf.Positional], json: bool = False) -> int:
    """Show the size of the cache of compiled kernels, or clear it.

    Kernels are cached so that later runs start without compilation. The cache key covers the computation and the
    versions of all tools that produced the kernel, so clearing the cache only frees disk space. The environment
    variable HYBRIDSIM_CACHE selects another folder; if it is empty, nothing is cached.

    For example:
      hybridsim cache info
      hybridsim cache clear

    Args:
        action: info or clear.
        json: print JSON instead of text.
    """
    from hybridsim.native.runtime import cache as kernels

    folder, reason = kernels.folder(), kernels.unusable_reason()
    entries = kernels.clear() if action == "clear" else kernels.entries()
    size = sum(entries.values())
    report = {"folder": None if folder is None else str(folder), "kernels": len(entries), "bytes": size}
    if action == "clear":
        report["removed"] = len(entries)
    if json:
        print_json(report | {"reason": reason})
    elif reason:
        say(f"kernels are not cached: {reason}")
    elif action == "clear":
        say(f"removed {len(entries)} kernels ({size / 2**20:.1f} MB) from {folder}")
    else:
        say(f"{len(entries)} kernels, {size / 2**20:.1f} MB of at most {kernels.MAX_BYTES // 2**20} MB, in {folder}")
    return 0
