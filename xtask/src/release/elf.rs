//! The requirements of a binary: loader, libraries and symbol versions.

use std::collections::BTreeSet;

use anyhow::{Context, bail};
use goblin::elf::Elf;
use goblin::elf::header::{EM_AARCH64, EM_X86_64};

#[derive(Debug, Default, PartialEq, Eq)]
pub struct ElfRequirements {
    pub loader: Option<String>,
    pub libraries: BTreeSet<String>,
    /// (library, version of what it is to have), as `("libc.so.6", "GLIBC_2.34")`.
    pub versions: BTreeSet<(String, String)>,
}

fn parse<'bytes>(what: &str, bytes: &'bytes [u8]) -> anyhow::Result<Elf<'bytes>> {
    Elf::parse(bytes).with_context(|| format!("{what} is no program or library for Linux"))
}

pub fn elf_requirements(what: &str, bytes: &[u8], architecture: &str) -> anyhow::Result<ElfRequirements> {
    let elf = parse(what, bytes)?;
    let is_fitting = match architecture {
        "amd64" => elf.header.e_machine == EM_X86_64,
        "arm64" => elf.header.e_machine == EM_AARCH64,
        _ => false,
    };
    if !is_fitting {
        bail!("{what} is for another machine than {architecture}: build it for this one");
    }
    let mut needs = ElfRequirements {
        loader: elf.interpreter.map(str::to_owned),
        libraries: elf.libraries.iter().map(|&name| name.to_owned()).collect(),
        versions: BTreeSet::new(),
    };
    for needed in elf.verneed.iter().flat_map(|section| section.iter()) {
        let library = elf.dynstrtab.get_at(needed.vn_file).unwrap_or_default();
        for version in needed.iter() {
            let version = elf.dynstrtab.get_at(version.vna_name).unwrap_or_default();
            needs.versions.insert((library.to_owned(), version.to_owned()));
        }
    }
    Ok(needs)
}

/// The versions that a library has.
pub fn versions(what: &str, bytes: &[u8]) -> anyhow::Result<BTreeSet<String>> {
    let elf = parse(what, bytes)?;
    let defined = elf.verdef.iter().flat_map(|section| section.iter());
    let names = defined.filter_map(|version| version.iter().next());
    Ok(names.filter_map(|name| elf.dynstrtab.get_at(name.vda_name)).map(str::to_owned).collect())
}

/// The oldest glibc that has everything, as `2.34`.
pub fn minimum_glibc(needs: &ElfRequirements) -> Option<String> {
    let number =
        |version: &str| -> Vec<u32> { version.split('.').filter_map(|it| it.parse().ok()).collect() };
    let versions = needs.versions.iter().filter_map(|(_, version)| version.strip_prefix("GLIBC_"));
    versions.max_by_key(|version| number(version)).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// This test is a program that the machine's libc is enough for.
    #[test]
    fn needs_of_this_program() {
        let bytes = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        let architecture = super::super::architecture().unwrap();
        let needs = elf_requirements("this test", &bytes, architecture).unwrap();
        assert!(needs.loader.as_ref().unwrap().contains("ld-linux"), "{needs:?}");
        assert!(needs.libraries.contains("libc.so.6"), "{needs:?}");
        assert!(
            needs
                .versions
                .iter()
                .any(|(library, version)| library == "libc.so.6" && version.starts_with("GLIBC_2."))
        );
        let other = if architecture == "amd64" { "arm64" } else { "amd64" };
        let error = elf_requirements("this test", &bytes, other).unwrap_err().to_string();
        assert_eq!(error, format!("this test is for another machine than {other}: build it for this one"));
        assert!(elf_requirements("a text", b"hello", architecture).is_err());
    }

    #[test]
    fn versions_of_glibc_compare_by_number() {
        let of = |versions: &[&str]| {
            let versions = versions.iter().map(|it| ("libc.so.6".to_owned(), (*it).to_owned())).collect();
            minimum_glibc(&ElfRequirements { versions, ..ElfRequirements::default() })
        };
        assert_eq!(of(&["GLIBC_2.9", "GLIBC_2.34", "GLIBC_2.2.5", "GCC_9.0"]), Some("2.34".to_owned()));
        assert_eq!(of(&["GCC_9.0"]), None);
    }
}
