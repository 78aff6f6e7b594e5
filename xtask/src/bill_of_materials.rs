//! A software bill of materials in the format CycloneDX 1.6. It has no serial number and no time, so
//! the same program has the same bill.

use serde_json::{Value, json};

use crate::dependencies::Dependency;
use crate::image::DebianPackage;

pub fn render(version: &str, crates: &[Dependency], packages: &[DebianPackage]) -> String {
    let components: Vec<Value> =
        crates.iter().map(of_crate).chain(packages.iter().map(of_package)).collect();
    let bill = json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": {
            "type": "application",
            "bom-ref": format!("pkg:cargo/endpointd@{version}"),
            "name": "endpointd",
            "version": version,
            "licenses": [{"license": {"id": "Apache-2.0"}}],
        }},
        "components": components,
    });
    format!("{bill:#}\n")
}

fn of_crate(dependency: &Dependency) -> Value {
    let Dependency { name, version, license, sha256, .. } = dependency;
    let id = format!("pkg:cargo/{name}@{version}");
    let hashes = sha256.iter().map(|hash| json!({"alg": "SHA-256", "content": hash}));
    json!({
        "type": "library",
        "bom-ref": id,
        "name": name,
        "version": version,
        "purl": id,
        "licenses": [{"expression": license}],
        "hashes": hashes.collect::<Vec<Value>>(),
    })
}

fn of_package(DebianPackage { name, version, architecture, .. }: &DebianPackage) -> Value {
    let id = format!("pkg:deb/debian/{name}@{}?arch={architecture}", version.replace('+', "%2B"));
    json!({"type": "library", "bom-ref": id, "name": name, "version": version, "purl": id})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crates_and_packages_have_package_urls() {
        let dependency = Dependency {
            name: "ring".to_owned(),
            version: "0.17.14".to_owned(),
            license: "Apache-2.0 AND ISC".to_owned(),
            authors: Vec::new(),
            folder: "x".into(),
            sha256: Some("ab".to_owned()),
        };
        let package = DebianPackage {
            name: "libc6".to_owned(),
            version: "2.36-9+deb12u14".to_owned(),
            architecture: "amd64".to_owned(),
            control: String::new(),
        };
        let bill: Value =
            serde_json::from_str(&render("0.1.0", &[dependency], &[package])).unwrap();
        assert_eq!(bill["components"][0]["purl"], "pkg:cargo/ring@0.17.14");
        assert_eq!(bill["components"][0]["hashes"][0]["content"], "ab");
        let purl = "pkg:deb/debian/libc6@2.36-9%2Bdeb12u14?arch=amd64";
        assert_eq!(bill["components"][1]["purl"], purl);
    }
}
