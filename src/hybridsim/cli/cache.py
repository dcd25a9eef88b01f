"""`hybridsim cache`: what compiled kernels take on disk, and removing them."""

from typing import Annotated, Literal

import tyro

from hybridsim.cli.output import print_json, say


def cache(action: Annotated[Literal["info", "clear"], tyro.conf.Positional], json: bool = False) -> int:
    """Tell what compiled kernels take on disk, or remove them.

    Kernels are kept so that a program that ran before starts at once. They are found by what they compute and by the
    versions of everything that made them, so clearing is only ever a matter of space. The environment variable
    HYBRIDSIM_CACHE names another folder, or none if it is empty.

    For example:
      hybridsim cache info
      hybridsim cache clear

    Args:
        action: info or clear.
        json: print JSON for other programs.
    """
    from hybridsim.native.runtime import cache as kernels

    place, trouble = kernels.folder(), kernels.unusable_reason()
    found = kernels.clear() if action == "clear" else kernels.entries()
    size = sum(found.values())
    report = {"folder": None if place is None else str(place), "kernels": len(found), "bytes": size}
    if action == "clear":
        report["removed"] = len(found)
    if json:
        print_json(report | {"trouble": trouble})
    elif trouble:
        say(f"kernels are not kept: {trouble}")
    elif action == "clear":
        say(f"removed {len(found)} kernels ({size / 2**20:.1f} MB) from {place}")
    else:
        say(f"{len(found)} kernels, {size / 2**20:.1f} MB of at most {kernels.MAX_BYTES // 2**20} MB, in {place}")
    return 0
