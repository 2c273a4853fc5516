//! Errors of canter-io as python-can's exceptions, with the errno.

use canter_io::Error;
use pyo3::prelude::*;

/// The exception for a failure to open or set up: `can.CanInitializationError` with the errno.
pub fn refused(error: Error) -> PyErr {
    exception("CanInitializationError", &error)
}

/// The exception for a failure to send or receive: `can.CanOperationError` with the errno.
pub fn failed(error: Error) -> PyErr {
    exception("CanOperationError", &error)
}

fn exception(class: &str, error: &Error) -> PyErr {
    Python::attach(|py| {
        let class = match py.import("can").and_then(|can| can.getattr(class)) {
            Ok(class) => class,
            Err(missing) => return missing,
        };
        match class.call1((error.to_string(), error.source.raw_os_error())) {
            Ok(value) => PyErr::from_value(value),
            Err(wrong) => wrong,
        }
    })
}
