"""`hybridsim cache`: size and removal of the cached kernels."""

from typing import Annotated, Literal

import tyro

from hybridsim.cli.output import print_json, say
from hybridsim.core.messages import pluralize


def cache(action: Annotated[Literal["info", "clear"], tyro.conf.Positional], json: bool = False) -> int:
    """Show the size of the cache of compiled kernels, or clear it.

    Kernels are cached so that later programs start without compilation. The cache key covers the computation and the
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
    size, count = sum(entries.values()), pluralize(len(entries), "kernel")
    info = {"folder": None if folder is None else str(folder), "kernels": len(entries), "bytes": size}
    if action == "clear":
        info["removed"] = len(entries)
    if json:
        print_json(info | {"reason": reason})
    elif reason:
        say(f"kernels are not cached: {reason}")
    elif action == "clear":
        say(f"removed {count} ({size / 2**20:.1f} MB) from {folder}")
    else:
        say(f"{count}, {size / 2**20:.1f} MB of at most {kernels.MAX_BYTES // 2**20} MB, in {folder}")
    return 0
