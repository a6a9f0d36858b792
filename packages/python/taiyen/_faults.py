"""faulthandler beside the library's handler of faults, which finds stores into arrays of transactional heaps.

faulthandler takes every fault for the program's end, and notifies nobody when it is enabled or disabled. A store into an array
may follow at once, so both are reported to the library from the first such heap on (packages/python/src/signals.cpp).
"""

import functools

from . import _core


def watch():
    """From now on, the library's handler stays in front of faulthandler's."""
    import faulthandler

    def reports(function):
        @functools.wraps(function)
        def call(*arguments, **options):
            _core.withdraw_fault_handler()
            try:
                return function(*arguments, **options)
            finally:
                _core.keep_fault_handler()

        call._taiyen = True
        return call

    for name in ("enable", "disable"):
        function = getattr(faulthandler, name)
        if not hasattr(function, "_taiyen"):
            setattr(faulthandler, name, reports(function))
    _core.keep_fault_handler()
