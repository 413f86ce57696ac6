// SPDX-License-Identifier: MIT
//! Compiles the C core into a static library. Two build scripts share this file: that of
//! ackwise-core, for a library used alone, and that of ackwise-link.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::SystemTime;
use std::{env, fs};

/// Sorted files in `folder` with this extension, except the template of a policy.
fn files(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    let mut files: Vec<PathBuf> = entries
        .map(|entry| entry.expect("readable folder").path())
        .filter(|p| p.extension().is_some_and(|x| x == extension))
        .filter(|p| p.file_name().is_some_and(|n| n != "TEMPLATE.c"))
        .collect();
    files.sort();
    files
}

fn changed(file: &Path) -> SystemTime {
    fs::metadata(file).and_then(|m| m.modified()).unwrap_or_else(|e| panic!("{}: {e}", file.display()))
}

/// A compiler as every C file needs it.
fn compiler(include: &Path, policy: &Path) -> cc::Build {
    let mut one = cc::Build::new();
    one.include(include).include(policy).std("c11").opt_level(2);
    one.flag("-ffreestanding").warnings(true).extra_warnings(true);
    one
}

/// Compiles every C file of `core` and of its folders `policy`, `rivals` and `host` whose object is
/// older than the file, any header or this build script, or was made by another compiler or with
/// other flags.
/// With `whole_archive`, the linker includes the whole library, wherever it is on its command line.
pub fn compile(core: &Path, whole_archive: bool) {
    let (include, policy, host) = (core.join("include"), core.join("policy"), core.join("host"));
    let (declared, rivals) = (include.join("ackwise"), core.join("rivals"));
    // Not the whole of core/, because tests write into core/build.
    for path in [&declared, &core.join("policies"), &policy, &rivals, &host] {
        println!("cargo:rerun-if-changed={}", path.display());
    }
    let listed = Command::new("sh").arg(core.join("policies")).arg("--check").status();
    assert!(
        listed.expect("sh, to check the lists of policies").success(),
        "a list of policies is not up to date; see above"
    );
    let headers = [&declared, &policy, &rivals]
        .into_iter()
        .flat_map(|folder| ["h", "def"].into_iter().flat_map(|extension| files(folder, extension)));
    let script = env::current_exe().expect("a build script knows its file");
    let stale = headers.chain([script]).map(|file| changed(&file)).max().expect("not empty");

    let out = PathBuf::from(env::var_os("OUT_DIR").expect("set by cargo"));
    // CC and CFLAGS change no file, so objects are named after what made them.
    let tool = compiler(&include, &policy).get_compiler();
    let mut flags = DefaultHasher::new();
    (tool.path(), tool.args()).hash(&mut flags);
    let flags = flags.finish();
    let mut library = cc::Build::new();
    if whole_archive {
        library.link_lib_modifier("+whole-archive");
    }
    for (folder, part) in [(core, "core"), (&policy, "policy"), (&rivals, "rivals"), (&host, "host")] {
        for file in files(folder, "c") {
            println!("cargo:rerun-if-changed={}", file.display());
            let stem = file.file_stem().expect("named").to_string_lossy();
            let object = out.join(format!("{part}-{stem}-{flags:016x}.o"));
            let newer = |at: SystemTime| at > stale && at > changed(&file);
            if !fs::metadata(&object).and_then(|m| m.modified()).is_ok_and(newer) {
                let made = compiler(&include, &policy).file(&file).compile_intermediates().remove(0);
                fs::rename(&made, &object).unwrap_or_else(|e| panic!("{}: {e}", made.display()));
            }
            library.object(object);
        }
    }
    library.compile("ackwise");
}
