//! The compiler for a kernel's modules. Debian's headers name the one that has built the kernel, such as gcc-14; a host
//! without it uses its own gcc, which an older one can: the kernel's configuration then names a flag that it lacks.

use crate::lab::{lab_failure, programs};
use canter_cli::failure::Result;
use std::{fs, path::Path};

/// The file of Debian's headers that names the compiler.
const VARIABLES: &str = ".kernelvariables";
/// Options of a kernel's configuration that are a flag of its compiler, and that flag's first gcc. All are about code's
/// alignment, so that modules built without run in kernels built with them.
const FLAGS: [(&str, u32); 1] = [("CONFIG_CC_HAS_MIN_FUNCTION_ALIGNMENT", 14)];

/// Modules of the lab have no type information (BTF), so that the version of pahole does not matter.
const NO_BTF: &str =
    "override CONFIG_DEBUG_INFO_BTF_MODULES :=\noverride CONFIG_PAHOLE_VERSION = $(PAHOLE_VERSION)\n";

/// Sets the variables of a package's headers: no type information, and the host's gcc if it has no compiler of that name.
pub fn adapt(headers: &Path) -> Result<()> {
    let file = headers.join(VARIABLES);
    let Ok(text) = fs::read_to_string(&file) else { return Ok(()) }; // as Ubuntu's headers
    let has = |name: &str| programs::in_path(name).is_some();
    let text = adapted(&text, has, host_gcc).unwrap_or(text) + NO_BTF;
    fs::write(&file, text).map_err(|e| lab_failure(format!("{}: {e}", file.display())))
}

/// The host's major version of gcc.
fn host_gcc() -> u32 {
    let output = std::process::Command::new("gcc").arg("-dumpversion").output();
    let text = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
    text.split('.').next().and_then(|major| major.trim().parse().ok()).unwrap_or(0)
}

/// The variables with the host's gcc; `None`: the host has what they name.
fn adapted(variables: &str, has: impl Fn(&str) -> bool, gcc: impl Fn() -> u32) -> Option<String> {
    const PREFIX: &str = "$(CROSS_COMPILE)gcc-";
    let (_, version) = variables.lines().find(|line| line.starts_with("CC ="))?.split_once(PREFIX)?;
    let cross = variables.lines().find_map(|line| line.split_once("CROSS_COMPILE = ")).map_or("", |(_, c)| c);
    if has(&format!("{cross}gcc-{}", version.trim())) {
        return None;
    }
    let gcc = gcc();
    let mut text = variables.replace(&format!("{PREFIX}{version}"), "gcc");
    for (option, _) in FLAGS.iter().filter(|(_, first)| gcc < *first) {
        text += &format!("override {option} :=\n");
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEBIAN: &str = "override ARCH = x86\n\
        CC = $(if $(DEBIAN_KERNEL_USE_CCACHE),$(CCACHE)) $(CROSS_COMPILE)gcc-14\n\
        override CROSS_COMPILE = x86_64-linux-gnu-\n";

    #[test]
    fn a_host_without_the_kernels_compiler_uses_its_own_with_the_flags_that_it_knows() {
        assert_eq!(adapted(DEBIAN, |name| name == "x86_64-linux-gnu-gcc-14", || 12), None);
        let text = adapted(DEBIAN, |_| false, || 12).unwrap();
        assert!(text.contains("CCACHE)) gcc\n") && !text.contains("gcc-14"), "{text}");
        assert!(text.ends_with("override CONFIG_CC_HAS_MIN_FUNCTION_ALIGNMENT :=\n"), "{text}");
        assert!(!adapted(DEBIAN, |_| false, || 15).unwrap().contains("override CONFIG"));
    }
}
