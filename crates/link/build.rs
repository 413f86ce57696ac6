// SPDX-License-Identifier: MIT
//! Compiles the C files that have changed.

#[path = "../core/compile.rs"]
mod compile;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed=../core/compile.rs");
    compile::compile(&std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../core/c"), true);
}
