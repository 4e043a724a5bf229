//! Packages charts.

use flate2::Compression;
use flate2::write::GzEncoder;

/// A chart as `helm package` writes it.
pub fn package(template: &str) -> Vec<u8> {
    let mut archive = Vec::new();
    for (name, text) in [
        ("web/Chart.yaml", "apiVersion: v2\nname: web\nversion: 1.0.0\n"),
        ("web/templates/a.yaml", template),
    ] {
        let mut header = vec![0_u8; 512];
        header[..name.len()].copy_from_slice(name.as_bytes());
        header[124..136].copy_from_slice(format!("{:011o}\0", text.len()).as_bytes());
        header[148..156].copy_from_slice(b"        ");
        header[156] = b'0';
        let sum: usize = header.iter().map(|byte| usize::from(*byte)).sum();
        header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
        archive.extend(header);
        archive.extend(text.as_bytes());
        archive.resize(archive.len().next_multiple_of(512), 0);
    }
    archive.resize(archive.len() + 1024, 0);
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    std::io::Write::write_all(&mut encoder, &archive).expect("memory");
    encoder.finish().expect("memory")
}
