//! The envelope: DSSE v1 with Ed25519. What is signed is the payload's bytes and their type, never a parsed form of them.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use ed25519_dalek::{Signature, Signer, SigningKey, VerifyingKey};
use hotcell_contract::{Envelope, EnvelopeSignature, PAYLOAD_TYPE, PREDICATE_TYPE, STATEMENT_TYPE, Statement};
use serde::Deserialize;
use sha2::{Digest, Sha256};

use super::base64;
use crate::keys::{self, hex, unhex};
use crate::state::StateError;

/// Ten thousand artifacts with long names fit.
const MAX_ENVELOPE: usize = 128 << 20;
/// Each that is by our key costs a verification.
const MAX_SIGNATURES: usize = 64;

/// The key that signs receipts here.
pub struct ReceiptKey {
    key: SigningKey,
    public_path: PathBuf,
}

/// The key that a receipt is verified with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PublicKey(VerifyingKey);

#[derive(Debug, thiserror::Error)]
pub enum ReceiptError {
    #[error("the receipt cannot be written down as JSON: {0}")]
    Json(#[from] serde_json::Error),
    #[error(transparent)]
    State(#[from] StateError),
    #[error("{0}: give the 64 digits of a public key, or a file that holds them")]
    Key(&'static str),
}

/// Why a receipt is none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReceiptFlaw {
    NotAnEnvelope(String),
    UnknownPayloadType(String),
    NoSignatureByKey,
    BadSignature,
    NotAStatement(String),
    UnknownPredicateType(String),
    MalformedField(String),
}

impl ReceiptFlaw {
    /// One word for programs.
    pub fn code(&self) -> &'static str {
        match self {
            ReceiptFlaw::NotAnEnvelope(_) => "not_an_envelope",
            ReceiptFlaw::UnknownPayloadType(_) => "unknown_payload_type",
            ReceiptFlaw::NoSignatureByKey => "no_signature_by_key",
            ReceiptFlaw::BadSignature => "bad_signature",
            ReceiptFlaw::NotAStatement(_) => "not_a_statement",
            ReceiptFlaw::UnknownPredicateType(_) => "unknown_predicate_type",
            ReceiptFlaw::MalformedField(_) => "malformed_field",
        }
    }
}

impl fmt::Display for ReceiptFlaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ReceiptFlaw::NotAnEnvelope(why) => write!(f, "it is no DSSE envelope: {why}"),
            ReceiptFlaw::UnknownPayloadType(given) => {
                write!(f, "its payload type is `{}`: it should be {PAYLOAD_TYPE}", short(given))
            }
            ReceiptFlaw::NoSignatureByKey => write!(f, "none of its signatures is by this key"),
            ReceiptFlaw::BadSignature => write!(f, "the signature is not that of its payload: one of them was changed"),
            ReceiptFlaw::NotAStatement(why) => write!(f, "what was signed is no in-toto statement: {why}"),
            ReceiptFlaw::UnknownPredicateType(given) => {
                write!(f, "its predicate type is `{}`: it should be {PREDICATE_TYPE}", short(given))
            }
            ReceiptFlaw::MalformedField(why) => write!(f, "the statement is malformed: {why}"),
        }
    }
}

fn short(text: &str) -> String {
    text.chars().take(100).collect()
}

impl ReceiptKey {
    pub(crate) fn open(dir: &Path) -> io::Result<ReceiptKey> {
        let key = keys::key(dir, "receipt")?;
        let public_path = keys::published(dir, "receipt", &key)?;
        Ok(ReceiptKey { key, public_path })
    }

    pub fn public(&self) -> PublicKey {
        PublicKey(self.key.verifying_key())
    }

    pub fn public_path(&self) -> &Path {
        &self.public_path
    }

    /// The bytes of the file.
    pub(super) fn sign(&self, statement: &Statement) -> Result<Vec<u8>, ReceiptError> {
        let body = serde_json::to_vec(statement)?;
        let sig = self.key.sign(&pre_authentication(PAYLOAD_TYPE, &body));
        let envelope = Envelope {
            payload_type: PAYLOAD_TYPE.into(),
            payload: base64::encode(&body),
            signatures: vec![EnvelopeSignature { keyid: self.public().id(), sig: base64::encode(&sig.to_bytes()) }],
        };
        let mut file = serde_json::to_vec(&envelope)?;
        file.push(b'\n');
        Ok(file)
    }
}

impl PublicKey {
    /// 64 digits. A key for which anybody can make signatures is none.
    pub fn parse(text: &str) -> Result<PublicKey, ReceiptError> {
        let bytes = unhex(text.trim()).and_then(|bytes| <[u8; 32]>::try_from(bytes).ok());
        let bytes = bytes.ok_or(ReceiptError::Key("it is no public key"))?;
        let key = VerifyingKey::from_bytes(&bytes).map_err(|_| ReceiptError::Key("it is no point of Ed25519"))?;
        if key.is_weak() {
            return Err(ReceiptError::Key("it is a key for which anybody can sign"));
        }
        Ok(PublicKey(key))
    }

    pub fn hex(&self) -> String {
        hex(self.0.as_bytes())
    }

    /// The sha256 of its 32 bytes.
    pub fn id(&self) -> String {
        hex(&Sha256::digest(self.0.as_bytes()))
    }
}

/// What is signed: `DSSEv1`, and type and body with their lengths before them.
fn pre_authentication(payload_type: &str, body: &[u8]) -> Vec<u8> {
    let head = format!("DSSEv1 {} {payload_type} {} ", payload_type.len(), body.len());
    [head.as_bytes(), body].concat()
}

fn parse_envelope(file: &[u8]) -> Result<(Envelope, Vec<u8>), ReceiptFlaw> {
    let none = |why: &str| ReceiptFlaw::NotAnEnvelope(why.to_owned());
    if file.len() > MAX_ENVELOPE {
        return Err(none("it is too long"));
    }
    let envelope: Envelope = serde_json::from_slice(file).map_err(|e| none(&short(&e.to_string())))?;
    if envelope.payload_type != PAYLOAD_TYPE {
        return Err(ReceiptFlaw::UnknownPayloadType(envelope.payload_type));
    }
    let body = base64::decode(&envelope.payload).ok_or_else(|| none("its payload is no base64"))?;
    Ok((envelope, body))
}

/// The statement of a receipt that this key has signed. Nothing of it is looked at before the signature was.
pub fn verify_receipt(file: &[u8], key: &PublicKey) -> Result<Statement, ReceiptFlaw> {
    let (envelope, body) = parse_envelope(file)?;
    if envelope.signatures.len() > MAX_SIGNATURES {
        return Err(ReceiptFlaw::NotAnEnvelope(format!("it has more than {MAX_SIGNATURES} signatures")));
    }
    let id = key.id();
    let mut by_key = envelope.signatures.iter().filter(|signature| signature.keyid == id).peekable();
    if by_key.peek().is_none() {
        return Err(ReceiptFlaw::NoSignatureByKey);
    }
    let signed = pre_authentication(&envelope.payload_type, &body);
    // All that claim to be by this key: of two, one of which is forged, somebody is lying.
    for signature in by_key {
        let bytes = base64::decode(&signature.sig).and_then(|bytes| Signature::from_slice(&bytes).ok());
        // Strict: one signature has one form, and a weak key has none.
        if bytes.is_none_or(|sig| key.0.verify_strict(&signed, &sig).is_err()) {
            return Err(ReceiptFlaw::BadSignature);
        }
    }
    parse_statement(&body)
}

/// The statement of a file that nobody has verified.
pub fn unverified_statement(file: &[u8]) -> Result<Statement, ReceiptFlaw> {
    parse_statement(&parse_envelope(file)?.1)
}

fn parse_statement(body: &[u8]) -> Result<Statement, ReceiptFlaw> {
    /// What every statement has, whatever it is about.
    #[derive(Deserialize)]
    struct Kind {
        #[serde(rename = "_type")]
        statement_type: String,
        #[serde(rename = "predicateType")]
        predicate_type: String,
    }
    let none = |e: serde_json::Error| ReceiptFlaw::NotAStatement(short(&e.to_string()));
    let kind: Kind = serde_json::from_slice(body).map_err(none)?;
    if kind.statement_type != STATEMENT_TYPE {
        return Err(ReceiptFlaw::NotAStatement(format!("its _type is `{}`", short(&kind.statement_type))));
    }
    if kind.predicate_type != PREDICATE_TYPE {
        return Err(ReceiptFlaw::UnknownPredicateType(kind.predicate_type));
    }
    let malformed = |e: serde_json::Error| ReceiptFlaw::MalformedField(short(&e.to_string()));
    let statement: Statement = serde_json::from_slice(body).map_err(malformed)?;
    match statement.problem() {
        Some(problem) => Err(ReceiptFlaw::MalformedField(problem)),
        None => Ok(statement),
    }
}
