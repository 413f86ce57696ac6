// SPDX-License-Identifier: MIT
//! With the feature `bundled`, compiles the C core into this crate.

#[cfg(feature = "bundled")]
mod compile;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    #[cfg(feature = "bundled")]
    compile::compile(&std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("c"), false);
}
