mod answers;
mod fixtures;
mod golden;
mod hostile;
mod signatures;
#[cfg(feature = "mail")]
mod smtp;
mod strict;

use crate::notification::Message;

/// Checks the message with every service.
pub fn check_all(message: &Message) {
    for (_, target) in fixtures::targets() {
        let request = super::request(&target, message, fixtures::now(), None).expect("a request");
        strict::check(&target, message, &request);
    }
    #[cfg(feature = "mail")]
    {
        let to = ["ops@example.com".to_owned()];
        strict::mail(&super::email::mail("tutti@example.com", &to, message).expect("a mail").formatted());
    }
}
