//! Names and labels: DNS rules and qualified names. Upstream: `apimachinery/pkg/util/validation`.

const LABEL: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters \
    or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', \
    regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
const SUBDOMAIN: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric \
    characters, '-' or '.', and must start and end with an alphanumeric character (e.g. \
    'example.com', regex used for validation is \
    '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const LABEL_VALUE: &str = "a valid label must be an empty string or consist of alphanumeric \
    characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. \
    'MyValue',  or 'my_value',  or '12345', regex used for validation is \
    '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";
const NAME_PART: &str = "name part must consist of alphanumeric characters, '-', '_' or '.', and \
    must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or \
    '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
const QUALIFIED: &str = "a qualified name must consist of alphanumeric characters, '-', '_' or \
    '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or \
    '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]') with an \
    optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')";
const CONFIG_KEY: &str = "a valid config key must consist of alphanumeric characters, '-', '_' or \
    '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is \
    '[-._a-zA-Z0-9]+')";

const LABEL_MAX: usize = 63;
const SUBDOMAIN_MAX: usize = 253;

/// The rule for names of a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rule {
    Label,
    Subdomain,
}

impl Rule {
    pub(crate) fn check(self, name: &str) -> Vec<String> {
        match self {
            Self::Label => label(name),
            Self::Subdomain => subdomain(name),
        }
    }

    /// A `generateName` may end with a dash. Upstream: `maskTrailingDash`.
    pub(crate) fn check_prefix(self, prefix: &str) -> Vec<String> {
        match prefix.strip_suffix('-') {
            Some(rest) if !rest.is_empty() => self.check(&format!("{rest}a")),
            _ => self.check(prefix),
        }
    }
}

fn too_long(max: usize) -> String {
    format!("must be no more than {max} characters")
}

fn is_lower_alphanumeric(byte: u8) -> bool {
    byte.is_ascii_lowercase() || byte.is_ascii_digit()
}

fn is_label(text: &str) -> bool {
    let bytes = text.as_bytes();
    let ends = [bytes.first(), bytes.last()];
    ends.iter().all(|end| end.is_some_and(|byte| is_lower_alphanumeric(*byte)))
        && bytes.iter().all(|byte| is_lower_alphanumeric(*byte) || *byte == b'-')
}

pub(crate) fn label(text: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    if text.len() > LABEL_MAX {
        wrong.push(too_long(LABEL_MAX));
    }
    if !is_label(text) {
        // Upstream has a separate message for names with dots.
        let is_subdomain = text.split('.').all(is_label);
        wrong.push(if is_subdomain { "must not contain dots" } else { LABEL }.to_owned());
    }
    wrong
}

pub(crate) fn subdomain(text: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    if text.len() > SUBDOMAIN_MAX {
        wrong.push(too_long(SUBDOMAIN_MAX));
    }
    if !text.split('.').all(is_label) {
        wrong.push(SUBDOMAIN.to_owned());
    }
    wrong
}

/// `[A-Za-z0-9]` at both ends, also `-_.` inside.
fn is_name_part(text: &str) -> bool {
    let bytes = text.as_bytes();
    let ends = [bytes.first(), bytes.last()];
    ends.iter().all(|end| end.is_some_and(u8::is_ascii_alphanumeric))
        && bytes.iter().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(byte))
}

pub(crate) fn label_value(text: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    if text.len() > LABEL_MAX {
        wrong.push(too_long(LABEL_MAX));
    }
    if !text.is_empty() && !is_name_part(text) {
        wrong.push(LABEL_VALUE.to_owned());
    }
    wrong
}

pub(crate) fn qualified_name(text: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    let parts: Vec<&str> = text.split('/').collect();
    let name = match parts.as_slice() {
        [name] => name,
        [prefix, name] => {
            if prefix.is_empty() {
                wrong.push("prefix part must be non-empty".to_owned());
            } else {
                wrong.extend(subdomain(prefix).iter().map(|one| format!("prefix part {one}")));
            }
            name
        }
        _ => return vec![QUALIFIED.to_owned()],
    };
    if name.is_empty() {
        wrong.push("name part must be non-empty".to_owned());
    } else if name.len() > LABEL_MAX {
        wrong.push(format!("name part {}", too_long(LABEL_MAX)));
    }
    if !is_name_part(name) {
        wrong.push(NAME_PART.to_owned());
    }
    wrong
}

pub(crate) fn config_key(text: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    if text.len() > SUBDOMAIN_MAX {
        wrong.push(too_long(SUBDOMAIN_MAX));
    }
    let is_key = |byte: &u8| byte.is_ascii_alphanumeric() || b"-._".contains(byte);
    if text.is_empty() || !text.as_bytes().iter().all(is_key) {
        wrong.push(CONFIG_KEY.to_owned());
    }
    match text {
        "." => wrong.push("must not be '.'".to_owned()),
        ".." => wrong.push("must not be '..'".to_owned()),
        text if text.starts_with("..") => wrong.push("must not start with '..'".to_owned()),
        _ => {}
    }
    wrong
}

pub(crate) fn port_number(port: i64) -> Option<&'static str> {
    (!(1..=65535).contains(&port)).then_some("must be between 1 and 65535, inclusive")
}

/// Upstream: `IsValidPortName`.
pub(crate) fn port_name(text: &str) -> Vec<&'static str> {
    let mut wrong = Vec::new();
    if text.len() > 15 {
        wrong.push("must be no more than 15 characters");
    }
    if !text.bytes().all(|byte| is_lower_alphanumeric(byte) || byte == b'-') || text.is_empty() {
        wrong.push("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)");
    }
    if !text.bytes().any(|byte| byte.is_ascii_lowercase()) {
        wrong.push("must contain at least one letter (a-z)");
    }
    if text.contains("--") {
        wrong.push("must not contain consecutive hyphens");
    }
    if text.starts_with('-') || text.ends_with('-') {
        wrong.push("must not begin or end with a hyphen");
    }
    wrong
}
