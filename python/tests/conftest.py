"""test_tables.py needs pyarrow and no CAN: the module python::host runs it on the host, beside peers. Where pyarrow is missing, as in
the lab's guest, only what canter says then is tested (test_requirements.py)."""

import importlib.util

collect_ignore = [] if importlib.util.find_spec("pyarrow") else ["test_tables.py"]
