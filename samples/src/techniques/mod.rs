//! The memory techniques: one short file each, with what it does, its formula in bytes, and where the formula comes from.
//!
//! Owns: the flags that the trainers share. Refuses: a framework: a trainer asks a technique where it matters, by a plain
//! function call, and without flags it does exactly what it did before the technique existed.

/// The flags of the techniques; without any, training is in fp32 with fused AdamW and nothing is saved.
#[derive(clap::Args, Clone, PartialEq, Debug, Default)]
pub struct Techniques {}

impl Techniques {
    /// Checks what can be checked before the device is touched.
    ///
    /// # Errors
    /// [`crate::Error::Arguments`] with the two flags that do not combine, and why.
    pub fn check(&self) -> Result<(), crate::Error> {
        Ok(())
    }
}
