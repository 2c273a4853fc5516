//! candump and cansend notation, both ways: the one place that reads or writes frames as text.
