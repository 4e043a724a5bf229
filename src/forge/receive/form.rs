//! Reads one field of `application/x-www-form-urlencoded`.

/// The decoded bytes of the first field of this name.
pub(super) fn field(body: &[u8], name: &str) -> Option<Vec<u8>> {
    body.split(|byte| *byte == b'&').find_map(|pair| {
        let equals = pair.iter().position(|byte| *byte == b'=')?;
        let (key, value) = (pair.get(..equals)?, pair.get(equals + 1..)?);
        (decoded(key) == name.as_bytes()).then(|| decoded(value))
    })
}

/// A broken escape stays as it is, as in browsers.
fn decoded(text: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((first, after)) = rest.split_first() {
        rest = after;
        match first {
            b'+' => bytes.push(b' '),
            b'%' => {
                match after.split_at_checked(2).and_then(|(digits, after)| Some((digit_pair(digits)?, after)))
                {
                    Some((byte, after)) => {
                        bytes.push(byte);
                        rest = after;
                    }
                    None => bytes.push(b'%'),
                }
            }
            other => bytes.push(*other),
        }
    }
    bytes
}

fn digit_pair(digits: &[u8]) -> Option<u8> {
    let mut byte = [0; 1];
    hex::decode_to_slice(digits, &mut byte).ok()?;
    Some(byte[0])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_decoded() {
        let check = |body: &str, expected: Option<&str>| {
            assert_eq!(field(body.as_bytes(), "payload").as_deref(), expected.map(str::as_bytes), "{body}");
        };
        check("payload=%7B%22a%22%3A+1%7D", Some("{\"a\": 1}"));
        check("x=1&pay%6Coad=%E5%8F%91&payload=2", Some("发"));
        check("payload=100%&y=%4", Some("100%"));
        check("payload", None);
        check("", None);
        check("payload=%zz%", Some("%zz%"));
    }
}
