//! Frames as `can.Message` and back.
//!
//! A message is made by its class's `tp_new` and its slots are written in place: `__init__` is Python code and half of
//! the cost of a message, and twelve `setattr` cost as much as the system call. The offsets of the slots are determined
//! once, by searching for known objects; slots without an offset are set by `setattr`.

use canter_io::{
    Frame, Identifier,
    batch::Origin,
    frame::{BRS, EFF_FLAG, EFF_MASK, ERR_FLAG, ESI, RTR_FLAG, SFF_MASK},
    node::Received,
};
use pyo3::{
    exceptions::PyValueError,
    ffi, intern,
    prelude::*,
    types::{PyBool, PyByteArray, PyFloat, PyInt, PyString, PyTuple, PyType},
};

/// The slots of `can.Message`, in the order that [`Maker::message`] fills them in.
pub const SLOTS: [&str; 12] = [
    "timestamp",
    "arbitration_id",
    "is_extended_id",
    "is_remote_frame",
    "is_error_frame",
    "channel",
    "is_fd",
    "is_rx",
    "bitrate_switch",
    "error_state_indicator",
    "data",
    "dlc",
];

/// Makes messages.
pub struct Maker {
    class: Py<PyType>,
    new: ffi::newfunc,
    nothing: Py<PyTuple>,
    names: [Py<PyString>; SLOTS.len()],
    /// Where each slot is in an object, in pointers; `None`: not found.
    places: Option<[usize; SLOTS.len()]>,
}

impl Maker {
    /// For `can.Message`.
    pub fn new(py: Python<'_>) -> PyResult<Self> {
        let class = py.import("can")?.getattr("Message")?.cast_into::<PyType>()?;
        // SAFETY: the class lives, and every class has a tp_new, a newfunc (Py_tp_new in the stable ABI).
        let slot = unsafe { ffi::PyType_GetSlot(class.as_type_ptr(), ffi::Py_tp_new) };
        assert!(!slot.is_null(), "a Python class without tp_new");
        // SAFETY: the slot Py_tp_new holds a newfunc.
        let new = unsafe { std::mem::transmute::<*mut std::ffi::c_void, ffi::newfunc>(slot) };
        let names = SLOTS.map(|name| PyString::intern(py, name).unbind());
        let mut maker =
            Self { class: class.unbind(), new, nothing: PyTuple::empty(py).unbind(), names, places: None };
        maker.places = maker.find_places(py)?;
        Ok(maker)
    }

    /// An object with empty slots.
    fn empty<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let class = self.class.bind(py).as_type_ptr();
        // SAFETY: the class and the empty tuple live; tp_new answers a new reference or NULL with an error set.
        unsafe {
            let new = (self.new)(class, self.nothing.as_ptr(), std::ptr::null_mut());
            Bound::from_owned_ptr_or_err(py, new)
        }
    }

    /// Sets each slot to a different object and searches the memory for it; `None` if a slot cannot be found.
    fn find_places(&self, py: Python<'_>) -> PyResult<Option<[usize; SLOTS.len()]>> {
        let words = self.class.bind(py).getattr("__basicsize__")?.extract::<usize>()? / size_of::<usize>();
        let mut places = [0; SLOTS.len()];
        for (place, name) in places.iter_mut().zip(&self.names) {
            let (message, mark) = (self.empty(py)?, PyByteArray::new(py, b"mark"));
            // A class may have a setter that accepts only certain values: then setattr sets the slots.
            if message.setattr(name, &mark).is_err() {
                return Ok(None);
            }
            // SAFETY: an object has __basicsize__ bytes, and only its own thread knows this one.
            let memory = unsafe { std::slice::from_raw_parts(message.as_ptr().cast::<usize>(), words) };
            let mut found = memory.iter().enumerate().filter(|&(_, &word)| word == mark.as_ptr() as usize);
            match (found.next(), found.next()) {
                (Some((at, _)), None) => *place = at,
                _ => return Ok(None),
            }
        }
        Ok(Some(places))
    }

    /// A message of a frame; `stamp_ns` is its time.
    pub fn message<'py>(
        &self,
        py: Python<'py>,
        received: &Received,
        stamp_ns: u64,
        channel: &Bound<'py, PyString>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let frame = &received.frame;
        let extended = frame.can_id & EFF_FLAG != 0;
        let id = frame.can_id & if extended { EFF_MASK } else { SFF_MASK };
        let is_rx = matches!(received.meta.origin, Origin::Bus | Origin::Unknown);
        let switch = |on| PyBool::new(py, on).to_owned().into_any();
        let values: [Bound<'py, PyAny>; SLOTS.len()] = [
            PyFloat::new(py, stamp_ns as f64 * 1e-9).into_any(),
            PyInt::new(py, id).into_any(),
            switch(extended),
            switch(frame.can_id & RTR_FLAG != 0),
            switch(frame.can_id & ERR_FLAG != 0),
            channel.clone().into_any(),
            switch(frame.is_fd()),
            switch(is_rx),
            switch(frame.flags & BRS != 0),
            switch(frame.flags & ESI != 0),
            PyByteArray::new(py, frame.data()).into_any(),
            PyInt::new(py, frame.len).into_any(),
        ];
        let message = self.empty(py)?;
        if let Some(places) = &self.places {
            let memory = message.as_ptr().cast::<*mut ffi::PyObject>();
            for (value, &place) in values.into_iter().zip(places) {
                // SAFETY: the place is a slot of the object, as `find_places` saw it. The object is new, so the slot is
                // empty; it takes over the reference.
                unsafe { memory.add(place).write(value.into_ptr()) };
            }
        } else {
            for (value, name) in values.into_iter().zip(&self.names) {
                message.setattr(name, value)?;
            }
        }
        Ok(message)
    }
}

/// The frame of a message.
pub fn frame(message: &Bound<'_, PyAny>) -> PyResult<Frame> {
    let py = message.py();
    let flag = |name: &Bound<'_, PyString>| message.getattr(name)?.is_truthy();
    let id: u32 = message.getattr(intern!(py, "arbitration_id"))?.extract()?;
    let id = match flag(intern!(py, "is_extended_id"))? {
        true => Identifier::Eff(id),
        false => Identifier::Sff(u16::try_from(id).unwrap_or(u16::MAX)),
    };
    let bad = |error| PyValueError::new_err(format!("{id:?}: {error}"));
    let dlc: usize = message.getattr(intern!(py, "dlc"))?.extract()?;
    if flag(intern!(py, "is_remote_frame"))? {
        return Frame::rtr(id, u8::try_from(dlc).unwrap_or(u8::MAX)).map_err(bad);
    }
    let data = message.getattr(intern!(py, "data"))?;
    let mut data: Vec<u8> = match data.cast::<PyByteArray>() {
        Ok(bytes) => bytes.to_vec(),
        Err(_) => data.extract()?,
    };
    let mut frame = if flag(intern!(py, "is_fd"))? {
        let brs = if flag(intern!(py, "bitrate_switch"))? { BRS } else { 0 };
        let esi = if flag(intern!(py, "error_state_indicator"))? { ESI } else { 0 };
        // As in other back-ends, a length without a DLC is padded with zeros.
        while data.len() < 64 && canter_io::frame::dlc_of_len(data.len()).is_none() {
            data.push(0);
        }
        Frame::fd(id, &data, brs | esi)
    } else {
        Frame::classic(id, &data)
    }
    .map_err(bad)?;
    if flag(intern!(py, "is_error_frame"))? {
        frame.can_id |= ERR_FLAG;
    }
    Ok(frame)
}
