//! Kinds Notification and Server: which events are sent to which service, and rented machines with their last day.

use std::collections::BTreeMap;

use jiff::Timestamp;
use jiff::civil::Date;
use serde::Serialize;
use serde_json::{Map, Value};

use super::{Location, NotificationPhase, QuietHours, SecretRef, TargetSelector};

/// One manifest below `notifications/`: the events that are sent to a chat, a mailbox or another program.
#[derive(Clone, Debug, PartialEq)]
pub struct Notification {
    pub name: String,
    pub service: NotificationService,
    pub language: MessageLanguage,
    pub selector: TargetSelector,
    /// `None`: all but [`NotificationPhase::Started`].
    pub phases: Option<Vec<NotificationPhase>>,
    pub quiet_hours: Vec<QuietHours>,
    pub location: Location,
}

impl Notification {
    pub fn selects_phase(&self, phase: NotificationPhase) -> bool {
        self.phases.as_ref().map_or(phase != NotificationPhase::Started, |phases| phases.contains(&phase))
    }

    /// The end of the quiet hours that contain `now`.
    pub fn quiet_until(&self, now: Timestamp, happened: NotificationPhase) -> Option<Timestamp> {
        self.quiet_hours.iter().filter_map(|hours| hours.until(now, happened)).max()
    }
}

/// The service with its credentials `C`, which are references in a manifest. The address of a chat's webhook is a credential.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotificationService<C = SecretRef> {
    /// A bot of a group; `secret`: what it signs with.
    Feishu {
        url: C,
        secret: Option<C>,
    },
    DingTalk {
        url: C,
        secret: Option<C>,
    },
    WeCom {
        url: C,
    },
    /// An incoming webhook: messages cannot be changed later.
    SlackWebhook {
        url: C,
    },
    /// A bot with the right `chat:write`: messages are updated in place.
    SlackBot {
        token: C,
        channel: String,
    },
    /// The address of a workflow.
    Teams {
        url: C,
    },
    /// CloudEvents in a signed request, as Standard Webhooks says.
    Generic {
        url: C,
        secret: Option<C>,
    },
    /// `url`: `smtps://user:password@host`.
    Email {
        url: C,
        from: String,
        to: Vec<String>,
    },
}

impl<C> NotificationService<C> {
    /// As `service:` of the manifest says it.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Feishu { .. } => "feishu",
            Self::DingTalk { .. } => "dingtalk",
            Self::WeCom { .. } => "wecom",
            Self::SlackWebhook { .. } | Self::SlackBot { .. } => "slack",
            Self::Teams { .. } => "teams",
            Self::Generic { .. } => "generic",
            Self::Email { .. } => "email",
        }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum MessageLanguage {
    #[default]
    En,
    Zh,
}

impl MessageLanguage {
    /// As `language:` of the manifest says it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::En => "en",
            Self::Zh => "zh",
        }
    }
}

/// One manifest below `servers/`: a machine, and until when it is paid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InventoryServer {
    pub name: String,
    pub labels: BTreeMap<String, String>,
    pub address: Option<String>,
    pub provider: Option<String>,
    /// The cluster that it is a node of.
    pub cluster: Option<String>,
    /// What else is known of it: size, owner, price.
    pub meta: Map<String, Value>,
    /// The last day.
    pub expires: Date,
    /// So many days before, a message is sent.
    pub warn_days: u16,
    pub location: Location,
    /// Where `cluster` is written.
    pub cluster_location: Option<Location>,
}

impl InventoryServer {
    /// Days from a date to the last one; below 0 when that is over.
    pub fn days_left(&self, today: Date) -> i32 {
        today.until(self.expires).map_or(0, |span| span.get_days())
    }

    /// Whether the end is so near that a message is sent.
    pub fn ends_soon(&self, today: Date) -> bool {
        self.days_left(today) <= i32::from(self.warn_days)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_phases_but_started_are_default() {
        let usual = Notification {
            name: "a".to_owned(),
            service: NotificationService::Teams { url: SecretRef::Env("TUTTI_SECRET_A".to_owned()) },
            language: MessageLanguage::En,
            selector: TargetSelector::default(),
            phases: None,
            quiet_hours: Vec::new(),
            location: Location::new("notifications/a.yaml", 1, 1),
        };
        let some = Notification { phases: Some(vec![NotificationPhase::Started]), ..usual.clone() };
        for phase in NotificationPhase::ALL {
            assert_eq!(usual.selects_phase(phase), phase != NotificationPhase::Started, "{phase:?}");
            assert_eq!(some.selects_phase(phase), phase == NotificationPhase::Started, "{phase:?}");
        }
    }

    #[test]
    fn servers_end_on_their_last_day() {
        let date = |text: &str| text.parse::<Date>().expect("a date");
        let server = InventoryServer {
            name: "web-1".to_owned(),
            labels: BTreeMap::new(),
            address: None,
            provider: None,
            cluster: None,
            meta: Map::new(),
            expires: date("2027-01-31"),
            warn_days: 14,
            location: Location::new("servers/web-1.yaml", 1, 1),
            cluster_location: None,
        };
        for (today, left, soon) in [
            ("2026-01-31", 365, false),
            ("2027-01-16", 15, false),
            ("2027-01-17", 14, true),
            ("2027-01-31", 0, true),
            ("2027-02-02", -2, true),
        ] {
            assert_eq!(
                (server.days_left(date(today)), server.ends_soon(date(today))),
                (left, soon),
                "{today}"
            );
        }
    }
}
