// SPDX-License-Identifier: MIT
//! Leaves out the build ID, a hash that also covers the paths in debug information.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rustc-link-arg-cdylib=-Wl,--build-id=none");
}
