//! Bytes, which JSON holds as base64.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

/// The error of base64 text. Line breaks are allowed.
pub(crate) fn mistake(text: &str) -> Option<String> {
    let letters = text.replace(['\r', '\n'], "");
    STANDARD.decode(&letters).err()?;
    let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/');
    let mut at = letters.bytes().position(|byte| !is_letter(byte)).unwrap_or(letters.len());
    // padding is told where it is wrong, a missing rest at the last whole group
    if letters.as_bytes().get(at) == Some(&b'=') && at % 4 >= 2 {
        let wanted = 4 - at % 4;
        let found = letters.bytes().skip(at).take(wanted).take_while(|byte| *byte == b'=').count();
        if found == wanted || at + found == letters.len() {
            at += found;
        }
    } else if at == letters.len() {
        at -= at % 4;
    }
    Some(format!("illegal base64 data at input byte {at}"))
}

/// As the server writes it: on one line.
pub(crate) fn canonical(text: String) -> String {
    if text.contains(['\r', '\n']) { text.replace(['\r', '\n'], "") } else { text }
}
