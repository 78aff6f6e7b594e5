//! Objects from files and standard input, as YAML or JSON.

mod document;
mod json;
mod source;
mod yaml;
mod yaml_scalar;

pub use self::document::{DecodedObject, FromObject};
pub use self::source::Source;

use self::document::Document;
use crate::cli_error::CliError;

/// The objects of all files in order, each in the form that `T` keeps.
pub fn read_objects<T: FromObject>(sources: &[Source]) -> Result<Vec<T>, CliError> {
    let mut objects = Vec::new();
    let mut n_documents = 0;
    for source in sources {
        for (at, document) in source.documents()?.into_iter().enumerate() {
            n_documents += usize::from(!matches!(document, Document::Empty));
            let read = document.objects().map_err(|reason| not_an_object(source, at, &reason))?;
            objects.extend(read);
        }
    }
    if n_documents == 0 {
        return Err(empty_input(sources));
    }
    Ok(objects)
}

/// The objects of a text that is part of the program, in YAML; the error says what is wrong with it.
pub fn parse_objects<T: FromObject>(text: &str) -> Result<Vec<T>, String> {
    let documents = yaml::documents(text).map_err(|error| error.to_string())?;
    let objects: Result<Vec<Vec<T>>, String> =
        documents.into_iter().map(Document::objects).collect();
    Ok(objects?.into_iter().flatten().collect())
}

fn not_an_object(source: &Source, at: usize, reason: &str) -> CliError {
    CliError::new(
        format!("document {} of {} is not a Kubernetes object: {reason}", at + 1, source.name()),
        "every document needs `apiVersion` and `kind`, as kubectl writes it with `-o yaml`",
    )
}

fn empty_input(sources: &[Source]) -> CliError {
    let names: Vec<String> = sources.iter().map(Source::name).collect();
    CliError::new(
        format!("the input is empty: {}", names.join(", ")),
        "`kubectl get svc,pod,node,endpoints,endpointslices -A -o yaml` prints the objects that are needed",
    )
}

#[cfg(test)]
mod fuzz;
