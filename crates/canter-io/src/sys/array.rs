//! An array whose elements keep their address when the array is moved, so that pointers to them stay valid.

use std::ptr::NonNull;

/// As `Box<[T]>`, except that pointers into it stay valid when it is moved. The compiler may assume that a box is the
/// only way to its content; what the kernel is given pointers into, or other elements point at, must not be in one.
pub(crate) struct Array<T: Copy>(NonNull<[T]>);

impl<T: Copy> Array<T> {
    /// `len` elements of this value.
    pub fn new(value: T, len: usize) -> Self {
        Self(NonNull::from(Box::leak(vec![value; len].into_boxed_slice())))
    }

    /// How many elements it has.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Where element `at` is, for as long as the array is neither dropped nor [leaked](Self::leak).
    ///
    /// # Panics
    /// When there is no such element.
    pub fn place(&self, at: usize) -> *mut T {
        assert!(at < self.len(), "element {at} of {}", self.len());
        // SAFETY: inside of the array.
        unsafe { self.0.cast::<T>().add(at) }.as_ptr()
    }

    /// The elements of the array.
    ///
    /// # Safety
    /// Nobody writes through a [`place`](Self::place) for as long as the slice is used.
    pub unsafe fn slice(&self) -> &[T] {
        // SAFETY: the array lives as long as the slice, and the caller promises the rest.
        unsafe { self.0.as_ref() }
    }

    /// The elements of the array, to be written.
    ///
    /// # Safety
    /// Nobody reads or writes through a [`place`](Self::place) for as long as the slice is used.
    pub unsafe fn slice_mut(&mut self) -> &mut [T] {
        // SAFETY: the array lives as long as the slice, and the caller promises the rest.
        unsafe { self.0.as_mut() }
    }

    /// Leaks the elements, because the kernel may still write to them. The array is empty afterwards.
    pub fn leak(&mut self) {
        std::mem::forget(std::mem::take(self));
    }
}

impl<T: Copy> Default for Array<T> {
    /// An empty array.
    fn default() -> Self {
        Self(NonNull::from(Box::leak(Box::default())))
    }
}

impl<T: Copy> Drop for Array<T> {
    fn drop(&mut self) {
        // SAFETY: it was made from a box, and nobody else frees it.
        drop(unsafe { Box::from_raw(self.0.as_ptr()) });
    }
}

// SAFETY: the elements belong to the array, like those of a box.
unsafe impl<T: Copy + Send> Send for Array<T> {}
