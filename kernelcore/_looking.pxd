"""A check for Ctrl-C in loops that do not hold the GIL."""

from cpython.exc cimport PyErr_CheckSignals

cdef enum:
    # Steps of a few nanoseconds between two looks: some ten milliseconds.
    STEPS = 1 << 22


cdef inline int look(Py_ssize_t* n_steps) except -1 nogil:
    """Look once `n_steps` have come together, and count from 0 again.

    Raises what the handler of a signal raises and, in a thread of `in_threads`, which no
    signal reaches, `Stopped`.
    """
    if n_steps[0] < STEPS:
        return 0
    n_steps[0] = 0
    with gil:
        PyErr_CheckSignals()
        from kernelcore._threads import check_stopped
        check_stopped()
    return 0
