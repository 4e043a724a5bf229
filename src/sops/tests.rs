//! Files encrypted by `sops` itself (`tests/fixtures/sops`), with their plain form.

#![allow(
    clippy::expect_used,
    reason = "a test fails by panicking; the exemption for tests does not reach their helpers"
)]

use secrecy::SecretString;

use super::{codes, decrypt_documents, identities};
use crate::manifest::yaml::{self, YamlDocument};
use crate::model::{DecryptionKeys, Diagnostic, RenderedObject, masked_body};

macro_rules! fixtures {
    ($($name:literal),*) => {
        [$(($name, include_str!(concat!("../../tests/fixtures/sops/", $name)))),*]
    };
}

const FIXTURES: [(&str, &str); 10] = fixtures![
    "one.key",
    "two.key",
    "secret.yaml",
    "secret.plain.yaml",
    "types.yaml",
    "types.plain.yaml",
    "suffix.yaml",
    "suffix.plain.yaml",
    "regex.yaml",
    "regex.plain.yaml"
];

fn fixture(name: &str) -> String {
    FIXTURES.iter().find(|(known, _)| *known == name).map(|(_, text)| (*text).to_owned()).expect("a fixture")
}

fn keys(names: &[&str]) -> DecryptionKeys {
    let read = |name: &&str| identities::read(&fixture(name)).expect("identities");
    DecryptionKeys::new(names.iter().flat_map(read).collect::<Vec<SecretString>>())
}

fn documents(text: &str) -> Vec<YamlDocument> {
    let (documents, mistakes) = yaml::parse("a.yaml", text);
    assert_eq!(mistakes, []);
    documents
}

/// The decrypted file equals the output of `sops -d`.
#[track_caller]
fn check(name: &str, identities: &[&str]) {
    let opened = decrypt_documents("a.yaml", documents(&fixture(&format!("{name}.yaml"))), &keys(identities));
    let opened: Vec<_> = opened.expect("it opens").iter().map(|one| one.document.root.to_json()).collect();
    let plain = documents(&fixture(&format!("{name}.plain.yaml")));
    assert_eq!(opened, plain.iter().map(|document| document.root.to_json()).collect::<Vec<_>>());
}

/// Compares the mistakes, which must not contain encrypted text.
#[track_caller]
fn refused(text: &str, identities: &[&str], expected: &[&str]) {
    let mistakes: Vec<Diagnostic> =
        decrypt_documents("a.yaml", documents(text), &keys(identities)).map(|_| ()).expect_err("refused");
    let lines: Vec<String> = mistakes
        .iter()
        .map(|mistake| {
            let line = mistake.location.as_ref().map_or(0, |location| location.start.line);
            format!("{} {line} {}", mistake.code, mistake.message)
        })
        .collect();
    assert_eq!(lines, expected);
    assert!(!format!("{mistakes:?}").contains("canary"));
}

#[test]
fn decryption_matches_sops() {
    check("secret", &["one.key"]);
    check("types", &["one.key"]);
    check("suffix", &["one.key"]);
    check("suffix", &["two.key"]);
    check("regex", &["one.key", "two.key"]);
}

#[test]
fn decrypted_document_debug_hides_values() {
    let opened = decrypt_documents("a.yaml", documents(&fixture("secret.yaml")), &keys(&["one.key"]))
        .expect("it opens");
    assert!(!format!("{opened:?}").contains("canary"));
}

#[test]
fn short_numbers_are_masked() {
    let opened = decrypt_documents("a.yaml", documents(&fixture("types.yaml")), &keys(&["one.key"]))
        .expect("it opens");
    let one = opened.into_iter().next().expect("a document");
    let body = one.document.root.to_json();
    let shown = masked_body(&RenderedObject::for_test(&body, one.sealed));
    for field in ["number", "negative", "fraction", "big", "whole", "small"] {
        let value = &shown["spec"][field];
        assert!(value.as_str().is_some_and(|text| text.starts_with("*** ")), "{field}: {value}");
    }
}

#[test]
fn plain_file_stays_unchanged() {
    let plain = fixture("secret.plain.yaml");
    let opened =
        decrypt_documents("a.yaml", documents(&plain), &DecryptionKeys::default()).expect("nothing to open");
    assert!(opened.iter().all(|one| one.sealed.is_none()));
}

#[test]
fn wrong_identity_decrypts_nothing() {
    let secret = fixture("secret.yaml");
    let name = "age1une56dwy2vw54z7dlxnenx8k9zc3weq5cplee5j936cgddayh4asf3zvfj";
    let line = secret.lines().position(|line| line == "sops:").unwrap_or_default() + 1;
    let message = format!("E3301 {line} this file is encrypted for {name}, and no age identity was given");
    refused(&secret, &[], &[&message]);
    let message = format!(
        "E3302 {line} this file is encrypted for {name}, and no identity that was given is one of them"
    );
    refused(&secret, &["two.key"], &[&message]);
}

#[test]
fn changed_file_is_refused() {
    let secret = fixture("secret.yaml");
    let message = |text: &str| {
        let mac = text.lines().position(|line| line.starts_with("    mac:")).unwrap_or_default() + 1;
        format!(
            "{} {mac} the values of this file are not those that were encrypted: `sops.mac` does not fit them",
            codes::MAC
        )
    };
    // A changed plain value, an added value, a removed value, and a missing second document.
    for changed in [
        secret.replace("team: shop", "team: shopping"),
        secret
            .replace("    empty: \"\"\n", "    empty: \"\"\n    more: \"\"\n")
            .replace("name: db", "name: other"),
        secret.replace("type: Opaque\n", ""),
        secret.split("\n---\n").next().unwrap_or_default().to_owned() + "\n",
        secret.replace("2026-11-21T21:15:35Z", "2026-11-21T21:15:36Z"),
    ] {
        assert_ne!(changed, secret);
        refused(&changed, &["one.key"], &[&message(&changed)]);
    }
    // Swapped values, and a plain one instead of an encrypted one.
    let moved = secret.replace("    username:", "    swap:").replace("    password:", "    username:");
    let moved = moved.replace("    swap:", "    password:");
    let wrong = "cannot be opened: it was changed, or belongs to another key or file";
    refused(
        &moved,
        &["one.key"],
        &[
            &format!("E3305 10 `stringData.password` {wrong}"),
            &format!("E3305 11 `stringData.username` {wrong}"),
        ],
    );
    refused(
        &secret.replace("    empty: \"\"", "    empty: canary-7"),
        &["one.key"],
        &["E3305 12 `stringData.empty` is not encrypted, and by the rule of this file it should be"],
    );
}

#[test]
fn invalid_envelope_reports_all_mistakes() {
    let of = |sops: &str| format!("apiVersion: v1\nkind: Secret\nmetadata: {{name: a}}\nsops: {sops}\n");
    refused(&of("x"), &["one.key"], &["E3304 4 `sops` is not a map"]);
    refused(
        &of("{}"),
        &["one.key"],
        &[
            "E3304 4 `sops.mac` is missing or not a text",
            "E3304 4 `sops.lastmodified` is missing or not a text",
        ],
    );
    let rest = "mac: a, lastmodified: b";
    refused(&of(&format!("{{{rest}}}")), &["one.key"], &["E3304 4 `sops` names no recipient"]);
    refused(
        &of(&format!("{{{rest}, pgp: [{{fp: a, enc: b}}], kms: [{{arn: a}}], age: []}}")),
        &["one.key"],
        &["E3306 4 encrypted with keys that are not supported: pgp, kms"],
    );
    refused(
        &of(&format!("{{{rest}, age: [{{enc: a}}], encrypted_regex: '(', }}")),
        &["one.key"],
        &["E3304 4 `sops.encrypted_regex` is not a regular expression"],
    );
    refused(
        &of(&format!("{{{rest}, age: [{{enc: a}}], encrypted_comment_regex: a}}")),
        &["one.key"],
        &["E3306 4 the rule `encrypted_comment_regex` is not supported"],
    );
    refused(
        &of(&format!("{{{rest}, age: [{{enc: a}}], encrypted_regex: a, encrypted_suffix: b}}")),
        &["one.key"],
        &["E3304 4 `encrypted_regex` and `encrypted_suffix`: a file has one rule"],
    );
    let second = format!("apiVersion: v1\nkind: Secret\nmetadata: {{name: b}}\n---\n{}", of("{}"));
    let message = "E3304 8 the first document of this file has no `sops`, and this one has";
    refused(&second, &["one.key"], &[message]);
}

#[test]
fn identities_are_never_quoted() {
    let key = fixture("one.key");
    assert_eq!(
        identities::read(&format!("{key}\n\n# more\n{}", fixture("two.key"))).map(|keys| keys.len()),
        Ok(2)
    );
    let said = |text: &str| identities::read(text).map(|_| ()).map_err(|error| error.to_string());
    assert_eq!(said("# nothing\n"), Err("it holds no age identity".to_owned()));
    let wrong = key.replace("AGE-SECRET-KEY-1", "AGE-SECRET-KEY-1QQ");
    assert_eq!(said(&wrong), Err("line 2 is not an age identity (AGE-SECRET-KEY-1…)".to_owned()));
    let plugin = "AGE-PLUGIN-YUBIKEY-1";
    assert!(said(plugin).is_err_and(|error| error.starts_with("line 1 is an identity of another kind")));
}
