"""Another python-can is refused at import, in one sentence with the way out."""

import subprocess
import sys

import can
import pytest

from canter import requirements


def with_slots(*slots):
    return type("Message", (), {"__slots__": slots})


def test_the_installed_python_can_has_the_fields_that_native_code_sets():
    assert requirements.problem(can.__version__, can.Message) is None
    assert requirements.problem("5.1.0", can.Message) is None, "a newer one with the same messages works"


@pytest.mark.parametrize(
    ("version", "message_class", "said"),
    [
        ("4.5.0", can.Message, "canter needs python-can 4.6 or newer, and 4.5.0 is installed"),
        ("3.3.4", can.Message, "canter needs python-can 4.6 or newer, and 3.3.4 is installed"),
        ("5.0.0", with_slots(*requirements.FIELDS[:-1]), "canter cannot make messages of python-can 5.0.0: can.Message lacks dlc"),
        ("5.0.0rc1", with_slots(*requirements.FIELDS, "priority"), "can.Message also has priority"),
    ],
)
def test_another_python_can_is_named_with_the_way_out(version, message_class, said):
    reason = requirements.problem(version, message_class)
    assert said in reason and reason.endswith("(pip install 'python-can>=4.6,<5')") and "\n" not in reason


def test_the_import_ends_with_that_sentence():
    program = "import can; can.__version__ = '4.5.0'\ntry: import canter\nexcept ImportError as error: print(error)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout == "canter needs python-can 4.6 or newer, and 4.5.0 is installed (pip install 'python-can>=4.6,<5')\n", done


def test_tables_without_pyarrow_say_what_to_install():
    program = "import sys; sys.modules['pyarrow'] = None\nimport canter\ntry: canter.read('x.log')\nexcept ImportError as error: print(error)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout == "canter.read and canter.decode need pyarrow (pip install 'canter[tables]')\n", done
