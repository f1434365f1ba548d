"""`python -m actions.simulated --socket PATH [--scene demo]`: the simulated cluster as a process."""

import sys
from datetime import datetime
from pathlib import Path

import click
from ruamel.yaml import YAML

from actions.simulated.description import describe
from actions.simulated.scenes import demo, scale
from actions.simulated.server import serve_until_terminated
from actions.simulated.stage import Stage
from actions.simulated.world import World
from config.system_clock import SystemClock


@click.command()
@click.option("--socket", "path", required=True, type=click.Path(path_type=Path))
@click.option("--scene", default="demo", help="demo, scale:5000, or a YAML file.")
@click.option("--frozen", is_flag=True, help="Time stands still until it is moved by a call.")
def main(path: Path, scene: str, frozen: bool) -> None:
    """Serve a simulated cluster at a Unix socket until SIGTERM."""
    clock = SystemClock()
    try:
        world = _world(scene, clock.now().wall)
    except (OSError, ValueError) as error:
        sys.exit(f"scene {scene!a} cannot be played: {error}")
    serve_until_terminated(Stage(world, None if frozen else clock), path)


def _world(scene: str, starts_at: datetime) -> World:
    """The world of that scene, beginning now unless its file says otherwise.

    Raises ValueError, OSError.
    """
    if scene == "demo":
        return demo(starts_at)
    if scene.startswith("scale:"):
        return scale(int(scene.removeprefix("scale:")), starts_at=starts_at)
    loaded = YAML(typ="safe", pure=True).load(Path(scene).read_text(encoding="utf-8"))
    if not isinstance(loaded, dict):
        raise ValueError("the file does not hold a mapping")  # noqa: TRY004  a fault of the file
    return describe({"starts_at": starts_at, **loaded})


if __name__ == "__main__":
    main()
