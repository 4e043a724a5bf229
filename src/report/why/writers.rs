//! Who may change a file. Trust goes by folder, so the path of a file decides.

/// The folder that decides who may write a file: the app's folder, else the topmost one, else the file itself.
pub fn folder_of(file: &str, app_folder: Option<&str>) -> String {
    if let Some(folder) = app_folder.filter(|folder| !folder.is_empty() && file.starts_with(*folder)) {
        return folder.to_owned();
    }
    match (file.split_once('/'), file.rsplit_once('/')) {
        // Each app has its own folder there.
        (Some(("apps", _)), Some((folder, _))) if folder != "apps" => format!("{folder}/"),
        (Some((top, _)), _) => format!("{top}/"),
        _ => file.to_owned(),
    }
}

/// `who may write apps/pay/ or approvals/`.
pub fn who_may_write(places: &[String]) -> String {
    let mut named: Vec<&str> = Vec::new();
    for place in places {
        if !named.contains(&place.as_str()) {
            named.push(place);
        }
    }
    format!("who may write {}", named.join(" or "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn path_decides_who_may_write_a_file() {
        for (file, app_folder, expected) in [
            ("apps/shop/pay/app.yaml", Some("apps/shop/pay/"), "apps/shop/pay/"),
            ("apps/shop/pay/layer/a.yaml.j2", Some("apps/shop/pay/"), "apps/shop/pay/"),
            ("apps/shop/web/app.yaml", Some("apps/shop/pay/"), "apps/shop/web/"),
            ("apps/pay.yaml", Some("apps/"), "apps/"),
            ("apps/pay.yaml", None, "apps/"),
            ("policies/prod/freeze.yaml", Some("apps/pay/"), "policies/"),
            ("clusters/bj/bj1.yaml", None, "clusters/"),
            ("templates/base/values.yaml", Some("apps/pay/"), "templates/"),
            ("rings.yaml", Some("apps/pay/"), "rings.yaml"),
            ("app.yaml", Some(""), "app.yaml"),
        ] {
            assert_eq!(folder_of(file, app_folder), expected, "{file}");
        }
        let both = ["apps/pay/".to_owned(), "policies/".to_owned(), "apps/pay/".to_owned()];
        assert_eq!(who_may_write(&both), "who may write apps/pay/ or policies/");
    }
}
