// SPDX-License-Identifier: MIT
//! Compiles the C core: every C file in `core/` and `core/policy/`.

use std::path::{Path, PathBuf};
use std::process::Command;

fn c_files(dir: &Path) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = std::fs::read_dir(dir)
        .unwrap_or_else(|e| panic!("{}: {e}", dir.display()))
        .map(|entry| entry.expect("readable folder").path())
        .filter(|p| p.extension().is_some_and(|x| x == "c"))
        .filter(|p| p.file_name().is_some_and(|n| n != "TEMPLATE.c"))
        .collect();
    files.sort();
    files
}

fn main() {
    let core = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../core");
    println!("cargo:rerun-if-changed={}", core.join("include/ackwise").display());
    println!("cargo:rerun-if-changed={}", core.join("policies").display());
    let listed = Command::new("sh").arg(core.join("policies")).arg("--check").status();
    assert!(
        listed.expect("sh, to check core/policy/policies.def").success(),
        "core/policy/policies.def does not list the policies; see above"
    );
    let mut build = cc::Build::new();
    build.include(core.join("include")).include(core.join("policy")).std("c11").opt_level(2);
    build.flag("-ffreestanding").warnings(true).extra_warnings(true);
    // Not the whole of core/: tests write into core/build, which would trigger a rebuild of
    // everything.
    println!("cargo:rerun-if-changed={}", core.join("policy").display());
    for dir in [core.clone(), core.join("policy")] {
        for file in c_files(&dir) {
            println!("cargo:rerun-if-changed={}", file.display());
            build.file(file);
        }
    }
    build.compile("ackwise");
}
