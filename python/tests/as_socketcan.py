"""A pytest plug-in: whatever asks python-can for "socketcan" gets canter, and python-can's own tests with it."""

import can.interfaces

can.interfaces.BACKENDS["socketcan"] = ("canter.bus", "CanterBus")
