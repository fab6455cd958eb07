"""Synthetic pairs, rendered on a cluster."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from aanet.cluster.results import reporting_errors, tables
from aanet.cluster.session import session
from aanet.io import storage
from aanet.io.storage import Bucket
from aanet.synthetic import prepare_worker
from aanet.synthetic.export import pair_files, write_pair

if TYPE_CHECKING:
    import pyarrow

    from aanet.synthetic import SyntheticWorld

_PAIRS_PER_TASK = 4


def synthesize(
    world: SyntheticWorld,
    output: str,
    address: str,
    workers: int | None = None,
    observe: Callable[[int], None] = lambda _: None,
) -> None:
    """Render all pairs of a world and write them below a folder or URL that all nodes reach.

    Args:
        world: The world; its textures are read by each node.
        output: As that of `write_pair`.
        address: Of the cluster, as that of `session`.
        workers: How many; by default one per core.
        observe: Called with the number of pairs of each task that is finished.
    """
    with session(address) as cluster:
        import pyarrow as pa
        import ray.data

        starts = range(0, len(world), _PAIRS_PER_TASK)
        tasks = [
            pa.table({"index": range(start, min(start + _PAIRS_PER_TASK, len(world)))}) for start in starts
        ]
        written = ray.data.from_arrow(tasks).map_batches(
            PairWriter,
            fn_constructor_args=(world, output),
            batch_size=None,
            batch_format="pyarrow",
            num_cpus=1,
            compute=ray.data.ActorPoolStrategy(size=workers or cluster.cpus),
        )
        for table in tables(written):
            observe(len(table))


class PairWriter:
    """A worker that renders and writes pairs."""

    def __init__(self, world: SyntheticWorld, output: str) -> None:
        prepare_worker()
        self.world, self.output = world, output

    @reporting_errors
    def __call__(self, indices: pyarrow.Table) -> pyarrow.Table:
        """Write the pairs of these indices."""
        local = storage.local_path(self.output)
        for index in indices.column("index").to_pylist():
            if local is not None:
                write_pair(self.world, index, local)
            else:
                self._upload(index)
        return indices

    def _upload(self, index: int) -> None:
        bucket = Bucket(self.output)
        with tempfile.TemporaryDirectory() as folder:
            write_pair(self.world, index, Path(folder))
            for name in pair_files(index):  # the left image last, as on a disk
                bucket.write(name, (Path(folder) / name).read_bytes())
