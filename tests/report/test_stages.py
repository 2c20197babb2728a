import sys
import time

import pytest
from programs import output_of

from kernelcore.report import StageRecorder
from kernelcore.report.stages import Stage


@pytest.mark.skipif(sys.platform == "win32", reason="the system does not tell")
def test_peak_memory_holds_what_was_touched():
    """In a process of its own, which has freed the array when the last stage ends."""
    program = (
        "import numpy as np\n"
        "from kernelcore.report import StageRecorder\n"
        "recorder = StageRecorder()\n"
        "with recorder.stage('small'): pass\n"
        "with recorder.stage('large'): np.ones(25_000_000)\n"
        "with recorder.stage('after'): pass\n"
        "print(*(stage.peak_bytes for stage in recorder.stages))\n"
    )
    small, large, after = map(int, output_of(program).split())
    assert small <= large <= after
    assert 200e6 < large < 20e9


def test_stages_are_timed_in_order_also_those_that_fail():
    recorder = StageRecorder()
    with recorder.stage("sleep"):
        time.sleep(0.05)
    with pytest.raises(KeyboardInterrupt), recorder.stage("cut short"):
        raise KeyboardInterrupt
    first, second = recorder.to_dict()
    assert (first["name"], second["name"]) == ("sleep", "cut short")
    assert 0 <= second["seconds"] < first["seconds"]
    assert 0.05 <= first["seconds"] < 5


def test_table_ends_with_the_total():
    recorder = StageRecorder()
    recorder.stages = [Stage("a", 1.25, 3 * 2**20), Stage("b", 60.0, None)]
    table = recorder.to_table()
    assert table.rows == (("a", "1.25", "3"), ("b", "60.00", "n/a"), ("total", "61.25", "3"))
    assert str(recorder) == str(table)
