"""Generated pictures of simple scenes, described in words.

`world` decides what a scene shows; `staging`, `picture`, `grounds`, `animals`, `people` and
`objects` draw it with the shapes of `canvas`; `language` describes it; `collection` makes
many.
"""

from kernelcore.datasets.scenes.collection import Scenes, make_scenes
from kernelcore.datasets.scenes.world import Scene, Thing

__all__ = ["Scene", "Scenes", "Thing", "make_scenes"]
