//! Tar archives that depend on their entries only: sorted, with fixed owners and times, so that two
//! builds of the same files have the same digest.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use flate2::{Compression, GzBuilder};
use ring::digest::{SHA256, digest};
use tar::{Builder, EntryType, Header};

/// Paths without a leading slash, and what is there. Folders above an entry are added.
#[derive(Clone, Debug, Default)]
pub struct Archive {
    entries: BTreeMap<String, Entry>,
}

#[derive(Clone, Debug)]
enum Entry {
    Folder,
    File { content: Content, mode: u32 },
    Link { target: String },
}

#[derive(Clone, Debug)]
enum Content {
    Bytes(Vec<u8>),
    Of(PathBuf),
}

const PROGRAM_MODE: u32 = 0o755;
const FILE_MODE: u32 = 0o644;

impl Archive {
    pub fn program(self, path: &str, source: &Path) -> Self {
        self.with(path, Entry::File { content: Content::Of(source.to_owned()), mode: PROGRAM_MODE })
    }

    pub fn file(self, path: &str, source: &Path) -> Self {
        self.with(path, Entry::File { content: Content::Of(source.to_owned()), mode: FILE_MODE })
    }

    pub fn text(self, path: &str, text: &str) -> Self {
        let content = Content::Bytes(text.as_bytes().to_vec());
        self.with(path, Entry::File { content, mode: FILE_MODE })
    }

    /// A file of another archive.
    pub fn bytes(self, path: &str, bytes: Vec<u8>, mode: u32) -> Self {
        self.with(path, Entry::File { content: Content::Bytes(bytes), mode })
    }

    pub fn link(self, path: &str, target: &str) -> Self {
        self.with(path, Entry::Link { target: target.to_owned() })
    }

    /// All files below a folder, below `path`; an empty path is the root.
    pub fn folder(mut self, path: &str, source: &Path) -> Result<Self> {
        let entries = fs::read_dir(source).with_context(|| cannot_read(source))?;
        for entry in entries {
            let source = entry.with_context(|| cannot_read(source))?.path();
            let name = source.file_name().unwrap_or_default().to_string_lossy();
            let path = format!("{path}/{name}").trim_start_matches('/').to_owned();
            self = match source.is_dir() {
                true => self.folder(&path, &source)?,
                false => self.file(&path, &source),
            };
        }
        Ok(self)
    }

    /// Without entries whose path starts with this.
    pub fn without(mut self, prefix: &str) -> Self {
        let folder = prefix.trim_end_matches('/');
        self.entries.retain(|path, _| !path.starts_with(prefix) && path != folder);
        self
    }

    fn with(mut self, path: &str, entry: Entry) -> Self {
        for (index, _) in path.match_indices('/') {
            self.entries.entry(path[..index].to_owned()).or_insert(Entry::Folder);
        }
        self.entries.insert(path.to_owned(), entry);
        self
    }

    /// The tar file, with this time (seconds since 1970) for all entries.
    pub fn tar(&self, time: u64) -> Result<Vec<u8>> {
        let mut builder = Builder::new(Vec::new());
        for (path, entry) in &self.entries {
            let mut header = Header::new_ustar();
            header.set_mtime(time);
            header.set_uid(0);
            header.set_gid(0);
            match entry {
                Entry::Folder => {
                    header.set_entry_type(EntryType::Directory);
                    header.set_mode(PROGRAM_MODE);
                    header.set_size(0);
                    builder.append_data(&mut header, format!("{path}/"), io::empty())?;
                }
                Entry::File { content, mode } => {
                    let bytes = content.read()?;
                    header.set_mode(*mode);
                    header.set_size(bytes.len() as u64);
                    builder.append_data(&mut header, path, bytes.as_slice())?;
                }
                Entry::Link { target } => {
                    header.set_entry_type(EntryType::Symlink);
                    header.set_mode(0o777);
                    header.set_size(0);
                    builder.append_link(&mut header, path, target)?;
                }
            }
        }
        Ok(builder.into_inner()?)
    }

    pub fn tar_gz(&self, time: u64) -> Result<Vec<u8>> {
        gzip(&self.tar(time)?)
    }
}

impl Content {
    fn read(&self) -> Result<Vec<u8>> {
        match self {
            Self::Bytes(bytes) => Ok(bytes.clone()),
            Self::Of(path) => fs::read(path).with_context(|| cannot_read(path)),
        }
    }
}

/// Without a name and a time in the header.
pub fn gzip(bytes: &[u8]) -> Result<Vec<u8>> {
    let mut encoder = GzBuilder::new().mtime(0).write(Vec::new(), Compression::default());
    encoder.write_all(bytes)?;
    Ok(encoder.finish()?)
}

/// In hexadecimal.
pub fn sha256(bytes: &[u8]) -> String {
    digest(&SHA256, bytes).as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

pub fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    let cannot = || format!("cannot write `{}`", path.display());
    let folder = path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder).with_context(cannot)?;
    File::create(path).and_then(|mut file| file.write_all(bytes)).with_context(cannot)
}

fn cannot_read(path: &Path) -> String {
    format!("cannot read `{}`", path.display())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_of_the_calls_does_not_matter() {
        let one = Archive::default().text("b/c", "x").link("a", "b/c");
        let other = Archive::default().link("a", "b/c").text("b/c", "x");
        assert_eq!(one.tar_gz(7).unwrap(), other.tar_gz(7).unwrap());
        assert_ne!(one.tar_gz(7).unwrap(), one.tar_gz(8).unwrap());
    }

    #[test]
    fn entries_have_fixed_owners_and_times() {
        let archive = Archive::default().text("a/b", "x").bytes("c", vec![1], PROGRAM_MODE);
        let bytes = archive.tar(7).unwrap();
        let mut read = tar::Archive::new(bytes.as_slice());
        let found: Vec<(String, u32, u64, u64)> = read
            .entries()
            .unwrap()
            .map(|entry| {
                let entry = entry.unwrap();
                let header = entry.header();
                let path = entry.path().unwrap().display().to_string();
                let owner = header.uid().unwrap() + header.gid().unwrap();
                (path, header.mode().unwrap(), owner, header.mtime().unwrap())
            })
            .collect();
        let expected = [("a/", 0o755, 0, 7), ("a/b", 0o644, 0, 7), ("c", 0o755, 0, 7)];
        assert_eq!(
            found,
            expected.map(|(path, mode, owner, time)| (path.to_owned(), mode, owner, time))
        );
    }

    #[test]
    fn digests_are_sha256() {
        assert_eq!(sha256(b""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    }
}
