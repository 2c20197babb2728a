"""Kill workers, schedulers and clients at random moments, and compare what the next run leaves.

python tests/distributed/kills.py 200  # kills; takes about half an hour on two cores
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

from runs import RUNS, contents, digests  # noqa: E402

VICTIMS = ("worker", "scheduler", "client")
_PATIENCE = 180.0

_CLIENT = """
import json, sys
sys.path.insert(0, sys.argv[1])
from runs import RUNS, digests
from distributed import Client
import dask
dask.config.set({"distributed.comm.timeouts.connect": "5s"})
with Client(scheduler_file=sys.argv[2], timeout=60) as client:
    client.wait_for_workers(1, timeout=60)
    print("ready", flush=True)
    found = RUNS[sys.argv[3]](sys.argv[4], client)
print(json.dumps(digests(found)))
"""


class Cluster:
    """A scheduler and two workers, each in a process of its own."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / "scheduler.json"
        self._log = (folder / "cluster.log").open("ab")
        self._processes: list[subprocess.Popen[bytes]] = []

    def start(self) -> None:
        self.file.unlink(missing_ok=True)
        file = ("--scheduler-file", str(self.file))
        # Without signals of their own: what stops them is SIGKILL.
        self._run("scheduler", *file, "--host", "127.0.0.1", "--port", "0", "--no-dashboard")
        wait_until(self.file.exists)
        for _ in range(2):
            self._run("worker", *file, "--nthreads", "1", "--no-dashboard")

    def kill(self, victim: str, rng: random.Random) -> None:
        if victim == "scheduler":
            self._processes[0].kill()
            return
        nannies = [process.pid for process in self._processes[1:]]
        workers = [child for nanny in nannies for child in children(nanny) if is_worker(child)]
        if workers:
            with contextlib.suppress(ProcessLookupError):
                os.kill(rng.choice(workers), signal.SIGKILL)

    def stop(self) -> None:
        for process in self._processes:
            for child in children(process.pid):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(child, signal.SIGKILL)
            process.kill()
            process.wait()
        self._processes.clear()

    def close(self) -> None:
        self.stop()
        self._log.close()

    def _run(self, what: str, *arguments: str) -> None:
        command = [sys.executable, "-m", "dask", what, *arguments]
        environment = os.environ | {"PYTHONPATH": str(HERE)}
        self._processes.append(
            subprocess.Popen(command, stdout=self._log, stderr=self._log, env=environment)
        )


def children(pid: int) -> list[int]:
    """Child processes."""
    try:
        text = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return []
    return [int(word) for word in text.split()]


def is_worker(pid: int) -> bool:
    """Whether a child of a nanny is the worker, not the tracker of its resources."""
    try:
        return b"spawn_main" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return False


def wait_until(is_true, seconds: float = 60.0) -> None:
    end = time.monotonic() + seconds
    while not is_true():
        if time.monotonic() > end:
            raise TimeoutError("it did not come")
        time.sleep(0.02)


def start_client(cluster: Cluster, name: str, folder: Path):
    command = [sys.executable, "-c", _CLIENT, str(HERE), str(cluster.file), name, str(folder)]
    pipe = subprocess.PIPE
    process = subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True)
    assert process.stdout is not None
    line = process.stdout.readline()
    if line.strip() != "ready":
        raise RuntimeError(process.communicate()[1])
    return process


def kill_once(cluster, name, victim, folder, *, expected, seconds, rng) -> str:
    """Run, kill after a random time, run again, and compare; return what the kill did."""
    results, files = expected
    process = start_client(cluster, name, folder)
    time.sleep(rng.uniform(0.0, seconds))
    has_ended = process.poll() is not None
    if victim == "client":
        process.kill()
    else:
        cluster.kill(victim, rng)
    output, errors = process.communicate(timeout=_PATIENCE)
    survived = process.returncode == 0
    if victim == "worker":
        assert survived, errors
    if victim == "scheduler":
        cluster.stop()
        cluster.start()
    if not survived:
        again = start_client(cluster, name, folder)
        output, errors = again.communicate(timeout=_PATIENCE)
        assert again.returncode == 0, errors
    assert json.loads(output.splitlines()[-1]) == results
    found = contents(folder)
    assert found == files, sorted(set(found.items()) ^ set(files.items()))[:5]
    return "too late" if has_ended else "finished" if survived else "stopped"


def run(n_kills: int, seed: int, *, log=print) -> dict[str, int]:
    """Kill as often as asked, over all functions and victims in turn."""
    rng = random.Random(seed)
    counts: dict[str, int] = {}
    with tempfile.TemporaryDirectory() as place:
        root = Path(place)
        expected, seconds = {}, {}
        for name, function in RUNS.items():
            folder = root / "expected" / name
            start = time.monotonic()
            results = function(folder, None)
            seconds[name] = 2.0 * (time.monotonic() - start)
            expected[name] = digests(results), contents(folder)
        cluster = Cluster(root)
        cluster.start()
        try:
            for number in range(n_kills):
                name = list(RUNS)[number % len(RUNS)]
                victim = VICTIMS[number // len(RUNS) % len(VICTIMS)]
                folder = root / f"{number}"
                folder.mkdir()
                scenes = root / "expected" / name / "scenes"
                if scenes.is_dir():
                    shutil.copytree(scenes, folder / "scenes")
                options = {"expected": expected[name], "seconds": seconds[name], "rng": rng}
                what = kill_once(cluster, name, victim, folder, **options)
                counts[f"{victim}, {what}"] = counts.get(f"{victim}, {what}", 0) + 1
                log(f"kill {number + 1}: {victim} during {name}: {what}")
                shutil.rmtree(folder)
        finally:
            cluster.close()
    return counts


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("n_kills", type=int, nargs="?", default=20)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    print(run(given.n_kills, given.seed))
