//! Messages of failed requests.

use std::env;
use std::error::Error as _;
use std::io;

/// Sources of credentials for S3 in the environment.
const CREDENTIALS: [&str; 5] = [
    "AWS_ACCESS_KEY_ID",
    "AWS_WEB_IDENTITY_TOKEN_FILE",
    "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
    "AWS_CONTAINER_CREDENTIALS_FULL_URI",
    "AWS_SKIP_SIGNATURE",
];

/// Returns the cause of a failed request as one line, which contains no credentials: an answer of a server may repeat those
/// of the request, so that only its code and its message are part of the line.
pub(super) fn cause(scheme: &str, error: &object_store::Error) -> String {
    use object_store::Error;
    let line = match error {
        Error::NotFound { source, .. } => refused("does not exist", &source.to_string()),
        // The answer to a listing.
        Error::Generic { source, .. } if source.to_string().contains("<Code>NoSuchBucket</Code>") => {
            refused("does not exist", &source.to_string())
        }
        Error::Precondition { .. } | Error::NotModified { .. } => CHANGED.to_owned(),
        Error::PermissionDenied { source, .. } => refused("access is denied", &source.to_string()),
        Error::Unauthenticated { source, .. } => refused("credentials are required", &source.to_string()),
        Error::Generic { source, .. } => described(&source.to_string(), deepest(error)),
        Error::NotSupported { source } => described(&source.to_string(), None),
        error => described(&error.to_string(), deepest(error)),
    };
    let has_credentials = CREDENTIALS.iter().any(|name| env::var_os(name).is_some());
    let has_answer = matches!(error, Error::NotFound { .. } | Error::Precondition { .. });
    if scheme == "s3" && !has_answer && !has_credentials {
        return format!(
            "{line}; the environment has no credentials (AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY), and AWS_SKIP_SIGNATURE is not \
             set, which reads a public bucket"
        );
    }
    line
}

/// The cause if an object is not the one that was listed.
pub(super) const CHANGED: &str = "has changed since it was listed; repeat the query";

fn refused(problem: &str, text: &str) -> String {
    match reply(text) {
        Some(reply) => format!("{problem}: {reply}"),
        None => problem.to_owned(),
    }
}

/// Returns the text of an error without the answer of the server, and its deepest source, if the text does not contain it.
fn described(text: &str, deepest: Option<String>) -> String {
    let reply = reply(text);
    let text = text.split('<').next().unwrap_or_default();
    let mut line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    line.truncate(line.trim_end_matches([':', ' ']).len());
    let more = reply.or_else(|| deepest.filter(|deepest| !deepest.contains('<') && !text.contains(deepest)));
    match more {
        Some(more) => format!("{line}: {more}"),
        None => line,
    }
}

fn deepest(error: &object_store::Error) -> Option<String> {
    let mut source = error.source()?;
    while let Some(next) = source.source() {
        source = next;
    }
    Some(source.to_string())
}

/// Returns the code and the message of an answer in XML.
fn reply(text: &str) -> Option<String> {
    let code = element(text, "Code")?;
    Some(match element(text, "Message") {
        Some(message) => format!("{message} ({code})"),
        None => code,
    })
}

/// Returns the text of an element as one line.
fn element(text: &str, name: &str) -> Option<String> {
    let (_, rest) = text.split_once(&format!("<{name}>"))?;
    let (content, _) = rest.split_once(&format!("</{name}>"))?;
    let line = content.split_whitespace().collect::<Vec<_>>().join(" ");
    (!line.is_empty() && !line.contains('<')).then_some(line)
}

/// Returns the error of a request as one of input and output.
pub(super) fn io_error(scheme: &str, error: &object_store::Error) -> io::Error {
    let kind = match error {
        object_store::Error::NotFound { .. } => io::ErrorKind::NotFound,
        object_store::Error::PermissionDenied { .. } => io::ErrorKind::PermissionDenied,
        _ => io::ErrorKind::Other,
    };
    io::Error::new(kind, cause(scheme, error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_code_and_message_of_an_answer_remain() {
        let answer = "Error performing GET http://host/b - Server returned non-2xx status code: 403 Forbidden: <?xml version=\"1.0\"?>
<Error><Code>InvalidAccessKeyId</Code><Message>The key does not exist</Message><AWSAccessKeyId>AKIASECRET</AWSAccessKeyId></Error>";
        assert_eq!(
            described(answer, Some(answer.to_owned())),
            "Error performing GET http://host/b - Server returned non-2xx status code: 403 Forbidden: The key does not exist \
             (InvalidAccessKeyId)"
        );
        let source = std::io::Error::other(answer);
        let error = object_store::Error::PermissionDenied { path: "a".to_owned(), source: source.into() };
        let line = cause("http", &error);
        assert_eq!(line, "access is denied: The key does not exist (InvalidAccessKeyId)");
    }

    #[test]
    fn a_message_is_one_line_with_the_deepest_source() {
        let line = described("request\n failed", Some("connection refused".to_owned()));
        assert_eq!(line, "request failed: connection refused");
        assert_eq!(described("status 500: <html>\n<p>a</p>", Some("<html>".to_owned())), "status 500");
    }
}
