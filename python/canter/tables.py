"""Recordings as pyarrow tables.

    import canter
    frames = canter.read("drive.blf", buses=["can0"])
    signals = canter.decode("drive.mf4", "car.dbc", signals=["EngineSpeed"])
    signals["Engine"].to_pandas()

Native code reads, decodes and builds the columns, and pyarrow takes them by Arrow's C interface: no frame and no value
passes through a Python object.
"""

from __future__ import annotations

import datetime
import os
import warnings
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Union

from canter import _native

if TYPE_CHECKING:
    import pyarrow

#: A file's name.
File = Union[str, "os.PathLike[str]"]
#: A time: a date with its zone, ns since 1970, or a time since the first frame.
Moment = Union[datetime.datetime, datetime.timedelta, int]

_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)
_MICROSECOND = datetime.timedelta(microseconds=1)


class RecordingWarning(UserWarning):
    """A recording is cut off or damaged, or has frames that do not fit their messages."""


def read(
    path: File,
    *,
    buses: Iterable[str] | None = None,
    start: Moment | None = None,
    end: Moment | None = None,
    zone: str | None = None,
    salvage: bool = False,
) -> pyarrow.Table:
    """The frames of a recording in any format that canter reads, a row each.

    The columns are those of canter's data sets: ``stamp`` (ns, UTC), ``bus``, ``id`` (without flags), ``extended``,
    ``rtr``, ``fd``, ``brs``, ``esi``, ``error``, ``dlc``, ``len``, ``data`` and ``direction`` (``R``, ``T`` or null).

    :param buses: only these buses; all unless given
    :param start: only frames from this time on: a :class:`~datetime.datetime` with its zone, ns since 1970, or a
        :class:`~datetime.timedelta` since the first frame
    :param end: only frames before this time
    :param zone: the zone of dates that name none, in ASC and BLF (``"Europe/Prague"``); UTC unless given
    :param salvage: skip what is damaged and read the rest; without it, damage is an error
    :raises OSError: the file cannot be opened or read
    :raises ValueError: it is no recording, or damaged, or does not have one of the buses
    """
    pyarrow = _pyarrow()
    table, remarks = _native.read(os.fspath(path), _choice(buses, start, end, zone, salvage))
    _warn(remarks)
    return pyarrow.table(table)


def decode(
    path: File,
    dbc: File | Iterable[File] | Mapping[str, File | Iterable[File]],
    *,
    signals: Iterable[str] | None = None,
    buses: Iterable[str] | None = None,
    start: Moment | None = None,
    end: Moment | None = None,
    zone: str | None = None,
    salvage: bool = False,
) -> dict[str, pyarrow.Table]:
    """The signals of a recording by DBC databases: a table for each message that the recording has, by its name.

    A table has ``stamp`` (ns, UTC), ``bus`` and a column for each signal: int64, uint64 or double, null where a frame does
    not have the signal. ``table.schema.metadata`` has units and texts of values (``canter.units``, ``canter.texts``).

    :param dbc: a database for all buses, several of which the first one that knows an identifier counts, or a mapping of
        buses to databases (the bus ``"any"``: all)
    :param signals: only these: ``"Signal"``, ``"Message.Signal"``, or ``"Message.*"``

    All other parameters are those of :func:`read`.

    :raises ValueError: also when the databases know none of the frames
    """
    pyarrow = _pyarrow()
    databases = list(_databases(dbc))
    wanted = None if signals is None else [str(signal) for signal in _several(signals)]
    choice = _choice(buses, start, end, zone, salvage)
    tables, known, frames, remarks = _native.decode(os.fspath(path), databases, wanted, choice)
    _warn(remarks)
    if frames > 0 and known == 0:
        raise ValueError(f"{os.fspath(path)}: none of {frames} frames matched: wrong database?")
    return {name: pyarrow.table(table) for name, table in tables}


def _pyarrow():
    try:
        import pyarrow
    except ImportError as error:
        raise ImportError("canter.read and canter.decode need pyarrow (pip install 'canter[tables]')") from error
    return pyarrow


def _several(names):
    return [names] if isinstance(names, (str, os.PathLike)) else names


def _databases(dbc):
    if isinstance(dbc, Mapping):
        for bus, files in dbc.items():
            for file in _several(files):
                yield None if bus == "any" else bus, os.fspath(file)
    else:
        for file in _several(dbc):
            yield None, os.fspath(file)


def _choice(buses, start, end, zone, salvage):
    return {
        "buses": None if buses is None else list(_several(buses)),
        "start": _moment("start", start),
        "end": _moment("end", end),
        "zone": zone,
        "salvage": salvage,
    }


def _moment(name, moment):
    """Whether a time counts from the first frame, and its ns."""
    if moment is None:
        return None
    if isinstance(moment, datetime.timedelta):
        since_first, ns = True, moment // _MICROSECOND * 1000
    elif isinstance(moment, datetime.datetime):
        if moment.tzinfo is None:
            raise ValueError(f"{name}: {moment} has no time zone (datetime.timezone.utc)")
        since_first, ns = False, (moment - _EPOCH) // _MICROSECOND * 1000
    elif isinstance(moment, int):
        since_first, ns = False, moment
    else:
        raise TypeError(f"{name}: must be a datetime, a timedelta or ns since 1970, not {type(moment).__name__}")
    if not 0 <= ns < 1 << 64:
        raise ValueError(f"{name}: {moment} is before the first time that a recording may have, or beyond the last")
    return since_first, ns


def _warn(remarks):
    for remark in remarks:
        warnings.warn(remark, RecordingWarning, stacklevel=3)
