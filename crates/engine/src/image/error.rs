//! Why an image can't be had.

use std::io;
use std::path::PathBuf;

/// One sentence each. Words of the image are shown without their control characters, and not at any length.
#[derive(Debug, thiserror::Error)]
pub enum ImageError {
    #[error("there is no image at `{}`", path.display())]
    NotFound { path: PathBuf },
    #[error("`{}` cannot be read: {error}", path.display())]
    Unreadable { path: PathBuf, error: io::Error },
    #[error("`{}` is not an image: {why}", path.display())]
    NotAnImage { path: PathBuf, why: String },
    #[error("`{}` has several images ({names}): save one of them alone", path.display())]
    SeveralImages { path: PathBuf, names: String },
    #[error("the image is damaged: {why}")]
    Corrupt { why: String },
    #[error("{what} is not what the image says: its digest is `sha256:{is}`, not `sha256:{expected}`")]
    Digest { what: String, is: String, expected: String },
    #[error("the image is for {found}, and this host runs {wanted}")]
    Architecture { found: String, wanted: &'static str },
    #[error("the image has an entry that may lead out of it, `{entry}`: {why}")]
    Escape { entry: String, why: String },
    #[error("{what} cannot be read here: {instead}")]
    Unsupported { what: String, instead: &'static str },
    #[error("the image is too large: {why}")]
    TooLarge { why: String },
    #[error("`{entry}` of the image cannot be written: {error}")]
    Write { entry: String, error: io::Error },
    #[error("the images in `{}` cannot be used: {error}", path.display())]
    Store { path: PathBuf, error: io::Error },
}

impl ImageError {
    pub(super) fn corrupt(why: impl Into<String>) -> ImageError {
        ImageError::Corrupt { why: why.into() }
    }

    pub(super) fn escape(entry: &[u8], why: impl Into<String>) -> ImageError {
        ImageError::Escape { entry: shown(entry), why: why.into() }
    }
}

/// What was read through streams of ours may carry an error of ours.
impl From<io::Error> for ImageError {
    fn from(error: io::Error) -> ImageError {
        match error.downcast::<ImageError>() {
            Ok(ours) => ours,
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                ImageError::corrupt("it ends in the middle of something")
            }
            Err(error) => ImageError::corrupt(error.to_string()),
        }
    }
}

/// The longest word of an image that is shown.
const MAX_SHOWN: usize = 200;

/// A hostile name must not write to a terminal.
pub(super) fn shown(word: &[u8]) -> String {
    let text = String::from_utf8_lossy(word);
    let mut short: String = text.chars().take(MAX_SHOWN).flat_map(char::escape_debug).collect();
    if text.chars().nth(MAX_SHOWN).is_some() {
        short.push_str("...");
    }
    short
}
