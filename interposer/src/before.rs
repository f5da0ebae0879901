//! Functions that are observed before they do their work, and then go on as if nothing had stood in their way.
//!
//! Owns: the few instructions by which one is exported. Refuses: what is learned of a call, and which function is the real one: both
//! are told by Rust code that has returned when the real function begins. So an exception may leave that function, and it finds its
//! arguments, also more of them than are known here, where the caller left them.

/// An exported function of a public name, with the arguments of its that matter: `record` is told them, and returns the real
/// function, which is then jumped to with the registers and the stack as the caller left them; where that is null, `none` is.
macro_rules! told_before {
    ($(#[$doc:meta])* fn $name:ident($($argument:ident: $type:ty),*) $(-> $result:ty)? = $symbol:literal, $record:ident, else $none:ident) => {
        $(#[$doc])*
        ///
        /// # Safety
        /// As its own.
        #[unsafe(naked)]
        #[cfg_attr(not(test), unsafe(export_name = $symbol))]
        pub unsafe extern "C" fn $name($($argument: $type),*) $(-> $result)? {
            core::arch::naked_asm!(
                ".cfi_startproc",
                "endbr64",
                // All that any of these functions takes in registers.
                "push rdi",
                "push rsi",
                "push rdx",
                "push rcx",
                "push r8",
                ".cfi_def_cfa_offset 48",
                "call {record}",
                "pop r8",
                "pop rcx",
                "pop rdx",
                "pop rsi",
                "pop rdi",
                ".cfi_def_cfa_offset 8",
                "test rax, rax",
                "jz 2f",
                "jmp rax",
                "2:",
                "jmp {none}",
                ".cfi_endproc",
                record = sym $record,
                none = sym $none,
            )
        }
    };
}

pub(crate) use told_before;
