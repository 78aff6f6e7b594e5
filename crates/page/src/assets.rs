//! The files of the page. They are hand-written and served as they are in the repository.

use axum::Router;
use axum::http::header;
use axum::response::Redirect;
use axum::routing::get;

struct Asset {
    path: &'static str,
    content_type: &'static str,
    text: &'static str,
}

const SCRIPT: &str = "text/javascript; charset=utf-8";
const STYLE: &str = "text/css; charset=utf-8";

macro_rules! asset {
    ($path:literal, $content_type:expr) => {
        Asset {
            path: concat!("/ui/", $path),
            content_type: $content_type,
            text: include_str!(concat!("../ui/", $path)),
        }
    };
}

const INDEX: Asset = Asset {
    path: crate::PATH,
    content_type: "text/html; charset=utf-8",
    text: include_str!("../ui/index.html"),
};

const ASSETS: [Asset; 21] = [
    INDEX,
    asset!("icon.svg", "image/svg+xml"),
    asset!("tokens.css", STYLE),
    asset!("frame.css", STYLE),
    asset!("overview.css", STYLE),
    asset!("service.css", STYLE),
    asset!("app.js", SCRIPT),
    asset!("dom.js", SCRIPT),
    asset!("format.js", SCRIPT),
    asset!("store.js", SCRIPT),
    asset!("connection.js", SCRIPT),
    asset!("header.js", SCRIPT),
    asset!("overview.js", SCRIPT),
    asset!("service.js", SCRIPT),
    asset!("diagram.js", SCRIPT),
    asset!("timeline.js", SCRIPT),
    asset!("changes.js", SCRIPT),
    asset!("waiting.js", SCRIPT),
    asset!("imports.js", SCRIPT),
    asset!("clusters.js", SCRIPT),
    asset!("playground.js", SCRIPT),
];

pub fn router() -> Router {
    let redirect = || async { Redirect::permanent(crate::PATH) };
    let router = Router::new().route("/ui", get(redirect));
    ASSETS.iter().fold(router, |router, asset| {
        let Asset { path, content_type, text } = *asset;
        router
            .route(path, get(move || async move { ([(header::CONTENT_TYPE, content_type)], text) }))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINES_MAX: usize = 400;

    #[test]
    fn files_of_the_page_are_small_and_need_nothing_from_elsewhere() {
        for Asset { path, text, .. } in &ASSETS {
            assert!(text.lines().count() <= LINES_MAX, "{path}: more than {LINES_MAX} lines");
            for foreign in [
                "https://",
                "innerHTML",
                "outerHTML",
                "insertAdjacentHTML",
                "eval(",
                "document.write",
            ] {
                assert!(!text.contains(foreign), "{path} contains `{foreign}`");
            }
        }
    }

    #[test]
    fn every_file_in_the_folder_is_served() {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("ui");
        for file in std::fs::read_dir(folder).unwrap() {
            let name = file.unwrap().file_name().into_string().unwrap();
            let is_served = ASSETS.iter().any(|asset| asset.path == format!("/ui/{name}"));
            assert!(is_served || name == "index.html", "{name} is not served");
        }
    }
}
