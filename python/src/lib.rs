//! The native half of the Python package: for the python-can plug-in, batches of frames from canter-io, one `can.Message`
//! each; and recordings as tables of Arrow ([`tables`]).

mod bus;
mod channel;
mod exception;
mod fork;
mod message;
mod open;
mod tables;
mod waiting;

use pyo3::prelude::*;

/// canter._native: internal; programs use canter.bus.
#[pymodule]
mod _native {
    #[pymodule_export]
    use super::bus::Bus;
    #[pymodule_export]
    use super::interfaces;
    #[pymodule_export]
    use super::tables::{Table, decode, read};
    use pyo3::prelude::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("SLOTS", super::message::SLOTS) // which python-can may lack
    }
}

/// The names of all CAN interfaces and canchar devices of this machine.
#[pyfunction]
fn interfaces() -> PyResult<Vec<String>> {
    let list = canter_io::Interface::list().map_err(exception::refused)?;
    let all = list.into_iter().chain(canter_io::Interface::devices());
    Ok(all.map(|interface| interface.name).collect())
}
