//! Kind Notification: which messages go to which chat, mailbox or program.

use jiff::civil::{Time, Weekday};

use super::super::codes;
use super::super::read::{ManifestFields, ManifestValue, NameRule, ReadContext};
use super::super::yaml::YamlNode;
use super::target_selector::{self, read_all, refuse_empty};
use super::time_zone::read_zone;
use super::{read_envelope, secret, spec_fields};
use crate::model::{
    MessageLanguage, Notification, NotificationPhase, NotificationService, QuietHours, SecretRef,
    TargetSelector,
};

/// The folder of notifications. Write access to it decides who receives the events of all clusters.
pub const FOLDER: &str = "notifications/";

#[derive(Clone, Copy, PartialEq, Eq)]
enum NotificationServiceName {
    Feishu,
    DingTalk,
    WeCom,
    Slack,
    Teams,
    Generic,
    Email,
}

const SERVICES: &[(&str, NotificationServiceName)] = &[
    ("feishu", NotificationServiceName::Feishu),
    ("dingtalk", NotificationServiceName::DingTalk),
    ("wecom", NotificationServiceName::WeCom),
    ("slack", NotificationServiceName::Slack),
    ("teams", NotificationServiceName::Teams),
    ("generic", NotificationServiceName::Generic),
    ("email", NotificationServiceName::Email),
];

const LANGUAGES: &[(&str, MessageLanguage)] = &[("en", MessageLanguage::En), ("zh", MessageLanguage::Zh)];

const DAYS: &[(&str, Weekday)] = &[
    ("Mon", Weekday::Monday),
    ("Tue", Weekday::Tuesday),
    ("Wed", Weekday::Wednesday),
    ("Thu", Weekday::Thursday),
    ("Fri", Weekday::Friday),
    ("Sat", Weekday::Saturday),
    ("Sun", Weekday::Sunday),
];

const IN_QUOTES: &str = "write it in quotes, \"#deploys\": without them, # begins a comment";

pub fn read(root: &YamlNode, reading: &mut ReadContext<'_>) -> Option<Notification> {
    let (metadata, spec) = read_envelope(root, NameRule::Label, false, reading)?;
    let mut fields = spec_fields(root, spec, reading)?;
    let service = read_service(&mut fields, reading);
    let language = fields.optional("language", reading);
    let language = language.and_then(|language| reading.choice(&language, LANGUAGES, &[], false));
    let selector = match fields.optional_selector("select", reading) {
        Some(select) => read_selector(&select, reading),
        None => Some(SelectorAndPhases::default()),
    };
    let quiet_hours = match fields.optional("quietHours", reading) {
        Some(list) => read_all(&list, reading, read_hours),
        None => Some(Vec::new()),
    };
    fields.finish(reading);
    let (metadata, (selector, phases)) = (metadata?, selector?);
    Some(Notification {
        name: metadata.name,
        service: service?,
        language: language.unwrap_or_default(),
        selector,
        phases,
        quiet_hours: quiet_hours?,
        location: metadata.location,
    })
}

fn read_service(
    fields: &mut ManifestFields<'_>,
    reading: &mut ReadContext<'_>,
) -> Option<NotificationService> {
    let kind = fields.required("service", reading);
    let kind = kind.and_then(|service| reading.choice(&service, SERVICES, &[], false));
    let given = ["url", "secret", "token", "channel", "from", "to"].map(|name| {
        let help = if name == "channel" { IN_QUOTES } else { "write it, or remove the field" };
        fields.optional_with_value(name, help, reading)
    });
    let Some(kind) = kind else {
        // A secret that is written out is a mistake whatever the service is.
        for credential in given.iter().take(3).flatten() {
            secret::read(credential, reading);
        }
        return None;
    };
    let name = SERVICES.iter().find(|(_, it)| *it == kind).map_or("", |(name, _)| name);
    let is_bot = kind == NotificationServiceName::Slack && (given[2].is_some() || given[3].is_some());
    let (needed, allowed): (&[&str], &[&str]) = match kind {
        NotificationServiceName::Feishu
        | NotificationServiceName::DingTalk
        | NotificationServiceName::Generic => (&["url"], &["secret"]),
        NotificationServiceName::WeCom | NotificationServiceName::Teams => (&["url"], &[]),
        NotificationServiceName::Slack if is_bot => (&["token", "channel"], &[]),
        NotificationServiceName::Slack => (&["url"], &[]),
        NotificationServiceName::Email => (&["url", "from", "to"], &[]),
    };
    let all = needed.iter().chain(allowed).copied().collect::<Vec<_>>().join(", ");
    let before = reading.mistakes.len();
    for value in given.iter().flatten() {
        let field = value.name();
        if !needed.contains(&field) && !allowed.contains(&field) {
            let place = value.name_location.clone().unwrap_or_else(|| reading.location(value.node));
            let (code, message, help) = match is_bot {
                true => (
                    codes::NOT_EXACTLY_ONE,
                    "slack takes `url`, or `token` and `channel`".to_owned(),
                    "url is an incoming webhook; token and channel are those of a bot",
                ),
                false => (
                    codes::UNKNOWN_FIELD,
                    format!("service {name} has no `{field}`"),
                    &*format!("it has {all}"),
                ),
            };
            reading.mistake(code, message, place, &value.path).help(help);
        }
    }
    for field in needed {
        if fields.get(field, reading).is_none() {
            let (place, path) = (fields.location().clone(), fields.path_of(field));
            let message = format!("`{field}` is missing: service {name} needs {}", needed.join(", "));
            reading.mistake(codes::MISSING_FIELD, message, place, &path).help(help_for(kind, field));
        }
    }
    let [url, secret, token, channel, from, to] = given;
    let credential = |value: Option<ManifestValue<'_>>, reading: &mut ReadContext<'_>| {
        value.and_then(|value| secret::read(&value, reading))
    };
    let url: Option<SecretRef> = credential(url, reading);
    let secret = credential(secret, reading);
    let token = credential(token, reading);
    let channel = channel.and_then(|channel| reading.word(&channel));
    let from = from.and_then(|from| read_address(&from, reading));
    let to = to.and_then(|to| {
        refuse_empty(&to, reading)?;
        read_all(&to, reading, read_address)
    });
    if reading.mistakes.len() > before {
        return None;
    }
    Some(match kind {
        NotificationServiceName::Feishu => NotificationService::Feishu { url: url?, secret },
        NotificationServiceName::DingTalk => NotificationService::DingTalk { url: url?, secret },
        NotificationServiceName::WeCom => NotificationService::WeCom { url: url? },
        NotificationServiceName::Slack if is_bot => {
            NotificationService::SlackBot { token: token?, channel: channel? }
        }
        NotificationServiceName::Slack => NotificationService::SlackWebhook { url: url? },
        NotificationServiceName::Teams => NotificationService::Teams { url: url? },
        NotificationServiceName::Generic => NotificationService::Generic { url: url?, secret },
        NotificationServiceName::Email => NotificationService::Email { url: url?, from: from?, to: to? },
    })
}

fn help_for(kind: NotificationServiceName, field: &str) -> &'static str {
    match (kind, field) {
        (NotificationServiceName::Email, "url") => {
            "write a reference to the address smtps://user:password@host, such as {env: TUTTI_SECRET_MAIL}"
        }
        (_, "url") => "write a reference to the address of the webhook, such as {env: TUTTI_SECRET_CHAT_URL}",
        (_, "token") => "write a reference to the token of the bot, such as {env: TUTTI_SECRET_SLACK}",
        (_, "channel") => IN_QUOTES,
        (_, "from") => "write the address that the mail comes from",
        _ => "write a list of addresses",
    }
}

/// A mailbox without a name, as it may stand in a header.
fn read_address(value: &ManifestValue<'_>, reading: &mut ReadContext<'_>) -> Option<String> {
    let text = reading.text(value)?;
    let is_sign = |byte: u8| byte.is_ascii_graphic() && !b"()<>[],;:\\\"@".contains(&byte);
    let fits = |part: &str| !part.is_empty() && part.bytes().all(is_sign);
    if text.len() > 254 || !text.split_once('@').is_some_and(|(user, host)| fits(user) && fits(host)) {
        let message = format!("{text:?} is not a mail address");
        reading.bad_value(value, message, "write it without a name: team@example.com");
        return None;
    }
    Some(text)
}

/// Apps, rings and clusters, and the phases.
type SelectorAndPhases = (TargetSelector, Option<Vec<NotificationPhase>>);

fn read_selector(value: &ManifestValue<'_>, reading: &mut ReadContext<'_>) -> Option<SelectorAndPhases> {
    let mut fields = ManifestFields::of(value, reading)?;
    let before = reading.mistakes.len();
    let selector = target_selector::read_fields(&mut fields, reading);
    let phases = fields.optional_selector("phases", reading).and_then(|phases| {
        refuse_empty(&phases, reading);
        read_all(&phases, reading, read_phase)
    });
    fields.finish(reading);
    // One that cannot be read must not select everything.
    (reading.mistakes.len() == before).then_some((selector, phases))
}

fn read_phase(value: &ManifestValue<'_>, reading: &mut ReadContext<'_>) -> Option<NotificationPhase> {
    let phases = NotificationPhase::ALL.map(|phase| (phase.as_str(), phase));
    reading.choice(value, &phases, &[], false)
}

fn read_hours(value: &ManifestValue<'_>, reading: &mut ReadContext<'_>) -> Option<QuietHours> {
    let mut fields = ManifestFields::of(value, reading)?;
    let from = fields.required("from", reading).and_then(|from| read_time(&from, false, reading));
    let end = fields.required("to", reading);
    let to = end.as_ref().and_then(|to| read_time(to, true, reading));
    let mut list = |name: &'static str, reading: &mut ReadContext<'_>| {
        let list = fields.optional_selector(name, reading);
        list.filter(|list| refuse_empty(list, reading).is_some())
    };
    let days = list("days", reading);
    let days =
        days.map(|days| read_all(&days, reading, |day, reading| reading.choice(day, DAYS, &[], false)));
    let except = list("except", reading).map(|phases| read_all(&phases, reading, read_phase));
    let time_zone = fields.required("timeZone", reading).and_then(|zone| read_zone(&zone, reading));
    fields.finish(reading);
    let (from, to, end) = (from?, to?, end?);
    if from == to && end.node.as_str() != Some("24:00") {
        reading.bad_value(
            &end,
            "the hours end when they begin",
            "a whole day is {from: \"00:00\", to: \"24:00\"}",
        );
        return None;
    }
    Some(QuietHours {
        from,
        to,
        days: days.unwrap_or_else(|| Some(Vec::new()))?,
        time_zone: time_zone?,
        except: except.unwrap_or_else(|| Some(Vec::new()))?,
    })
}

/// `22:00`; as an end, `24:00` is the start of the next day.
fn read_time(value: &ManifestValue<'_>, is_end: bool, reading: &mut ReadContext<'_>) -> Option<Time> {
    let text = reading.text(value)?;
    if is_end && text == "24:00" {
        return Some(Time::midnight());
    }
    let two = |part: &str| {
        let is_number = part.len() == 2 && part.bytes().all(|byte| byte.is_ascii_digit());
        is_number.then(|| part.parse().ok())?
    };
    let parts = text.split_once(':').and_then(|(hour, minute)| two(hour).zip(two(minute)));
    let time = parts.and_then(|(hour, minute)| Time::new(hour, minute, 0, 0).ok());
    if time.is_none() {
        reading.bad_value(
            value,
            format!("{text:?} is not a time of day"),
            "write hours and minutes: \"22:00\"",
        );
    }
    time
}
