"""What the back-end needs of python-can. Native code fills the fields of messages without their ``__init__``, so another
python-can is refused at import, in one sentence, instead of messages that lack fields."""

from __future__ import annotations

import re

from canter._native import SLOTS

#: The oldest python-can that works. pyproject.toml caps at 5; whoever installs a newer one anyway is stopped by its fields.
OLDEST = (4, 6)

#: The fields that native code sets.
FIELDS = tuple(SLOTS)

_REMEDY = "pip install 'python-can>=4.6,<5'"


def problem(version: str, message_class: type) -> str | None:
    """Why this python-can does not work, as a sentence with the way out; ``None`` if it does.

    A version that is too new works as long as its messages have the fields that this back-end sets, and no others.
    """
    numbers = tuple(int(number) for number in re.findall(r"\d+", version)[:2])
    if numbers and numbers < OLDEST:
        return f"canter needs python-can 4.6 or newer, and {version} is installed ({_REMEDY})"
    slots = {slot for base in message_class.__mro__ for slot in getattr(base, "__slots__", ())} - {"__weakref__"}
    missing = [field for field in FIELDS if not hasattr(message_class, field)]
    unknown = sorted(slots - set(FIELDS))
    if missing or unknown:
        what = f"lacks {', '.join(missing)}" if missing else f"also has {', '.join(unknown)}"
        return f"canter cannot make messages of python-can {version}: can.Message {what} ({_REMEDY})"
    return None
