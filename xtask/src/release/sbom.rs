//! The SBOM in SPDX 2.3.

use serde_json::{Value, json};

use super::build_origin::BuildOrigin;
use super::components::{ComponentKind, ReleaseComponent, ShippedProgram};
use super::{LICENSE, REPOSITORY, VERSION};

/// The described artifact.
pub struct SbomSubject {
    name: &'static str,
    purpose: &'static str,
    /// It ends the document's address, which no other document has.
    key: String,
    version: String,
}

impl SbomSubject {
    pub fn image(digest: &str) -> Self {
        let key = digest.replace(':', "-");
        Self { name: "tutti-image", purpose: "CONTAINER", key, version: digest.to_owned() }
    }

    pub fn archive(name: &str) -> Self {
        Self { name: "tutti-archive", purpose: "ARCHIVE", key: name.to_owned(), version: VERSION.to_owned() }
    }
}

/// The document; the same inputs give the same bytes.
pub fn spdx(
    subject: &SbomSubject,
    components: &[ReleaseComponent],
    origin: &BuildOrigin,
) -> anyhow::Result<Vec<u8>> {
    let mut components: Vec<&ReleaseComponent> = components.iter().collect();
    components.sort();
    let own = |name: &str, purpose: &str, version: &str| {
        json!({
            "SPDXID": format!("SPDXRef-{name}"),
            "name": name,
            "versionInfo": version,
            "primaryPackagePurpose": purpose,
            "supplier": "Organization: tutti",
            "downloadLocation": format!("git+{REPOSITORY}@{}", origin.revision.trim_end_matches("-modified")),
            "filesAnalyzed": false,
            "licenseConcluded": "NOASSERTION",
            "licenseDeclared": LICENSE,
            "copyrightText": "NOASSERTION",
        })
    };
    let mut packages = vec![
        own(subject.name, subject.purpose, &subject.version),
        own("tutti", "APPLICATION", VERSION),
        own("helm-render", "APPLICATION", VERSION),
    ];
    let whole = format!("SPDXRef-{}", subject.name);
    let mut relations = vec![
        relation("SPDXRef-DOCUMENT", "DESCRIBES", &whole),
        relation(&whole, "CONTAINS", "SPDXRef-tutti"),
        relation(&whole, "CONTAINS", "SPDXRef-helm-render"),
    ];
    for component in components {
        let id = id(component);
        relations.push(match component.inside {
            Some(ShippedProgram::Tutti) => relation("SPDXRef-tutti", "STATIC_LINK", &id),
            Some(ShippedProgram::HelmRender) => relation("SPDXRef-helm-render", "STATIC_LINK", &id),
            None => relation(&whole, "CONTAINS", &id),
        });
        packages.push(package(component, &id));
    }
    let document = json!({
        "spdxVersion": "SPDX-2.3",
        "dataLicense": "CC0-1.0",
        "SPDXID": "SPDXRef-DOCUMENT",
        "name": format!("tutti {VERSION}"),
        "documentNamespace": format!("{REPOSITORY}/spdx/{}-{VERSION}-{}", subject.name, subject.key),
        "creationInfo": {
            "created": origin.timestamp()?,
            "creators": [format!("Tool: tutti-xtask-{VERSION}")],
        },
        "packages": packages,
        "relationships": relations,
    });
    Ok(serde_json::to_vec_pretty(&document)?)
}

fn package(component: &ReleaseComponent, id: &str) -> Value {
    let mut package = json!({
        "SPDXID": id,
        "name": component.name,
        "versionInfo": component.version,
        "downloadLocation": "NOASSERTION",
        "filesAnalyzed": false,
        "licenseConcluded": "NOASSERTION",
        "licenseDeclared": component.license.as_deref().unwrap_or("NOASSERTION"),
        "copyrightText": "NOASSERTION",
    });
    if let Some(sha256) = &component.sha256 {
        package["checksums"] = json!([{"algorithm": "SHA256", "checksumValue": sha256}]);
    }
    if let Some(purl) = &component.purl {
        package["externalRefs"] = json!([{
            "referenceCategory": "PACKAGE-MANAGER",
            "referenceType": "purl",
            "referenceLocator": purl,
        }]);
    }
    package
}

/// Letters, digits, `.` and `-` are all that it may have.
fn id(component: &ReleaseComponent) -> String {
    let kind = match component.kind {
        ComponentKind::Crate => "crate",
        ComponentKind::Native => "library",
        ComponentKind::Go => "go",
        ComponentKind::Debian => "deb",
    };
    let plain = |text: &str| -> String {
        let allowed =
            |letter: char| if letter.is_ascii_alphanumeric() || letter == '.' { letter } else { '-' };
        text.chars().map(allowed).collect()
    };
    format!("SPDXRef-{kind}-{}-{}", plain(&component.name), plain(&component.version))
}

fn relation(of: &str, kind: &str, to: &str) -> Value {
    json!({"spdxElementId": of, "relationshipType": kind, "relatedSpdxElement": to})
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn component(kind: ComponentKind, name: &str, inside: Option<ShippedProgram>) -> ReleaseComponent {
        ReleaseComponent {
            kind,
            name: name.to_owned(),
            version: "1.0+x~1".to_owned(),
            inside,
            license: (kind == ComponentKind::Crate).then(|| "MIT".to_owned()),
            sha256: Some("00".repeat(32)),
            purl: Some(format!("pkg:x/{name}")),
            texts: Vec::new(),
        }
    }

    #[test]
    fn every_package_has_valid_relations() {
        let components = [
            component(ComponentKind::Debian, "libc6", None),
            component(ComponentKind::Crate, "serde_json", Some(ShippedProgram::Tutti)),
            component(ComponentKind::Go, "example.org/a/v2", Some(ShippedProgram::HelmRender)),
        ];
        let origin = BuildOrigin { revision: "c0ffee-modified".to_owned(), time: 0 };
        let bytes = spdx(&SbomSubject::image("sha256:ab"), &components, &origin).unwrap();
        let document: Value = serde_json::from_slice(&bytes).unwrap();
        let texts = |of: &str, field: &str| -> BTreeSet<String> {
            let list = document[of].as_array().unwrap();
            list.iter().map(|it| it[field].as_str().unwrap().to_owned()).collect()
        };
        let ids = texts("packages", "SPDXID");
        assert_eq!(ids, texts("relationships", "relatedSpdxElement"));
        assert!(ids.contains("SPDXRef-crate-serde-json-1.0-x-1"), "{ids:?}");
        assert!(ids.contains("SPDXRef-go-example.org-a-v2-1.0-x-1"), "{ids:?}");
        assert_eq!(document["creationInfo"]["created"], "1970-01-01T00:00:00Z");
        let licenses = texts("packages", "licenseDeclared");
        assert!(licenses.contains("NOASSERTION") && licenses.contains("MIT"), "{licenses:?}");
    }
}
