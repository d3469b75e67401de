//! Whether a lease counts: what it says, who signed it, when, and what it was made from.

use hotcell_contract::{Lease, MAX_CHAIN};
use jiff::Timestamp;

use super::keys::{Role, Trusted, is_signed_by, kid_of};
use super::{LeaseRefusal, for_cosignature, for_signature, malformed, text_of};
use crate::keys::unhex;

/// A lease is a page, also one that was handed on a few times.
const MAX_BYTES: usize = 256 << 10;

/// Who verifies, and when.
pub(crate) struct Verifier<'a> {
    pub(crate) trusted: &'a [Trusted],
    pub(crate) now: Timestamp,
    pub(crate) most_minutes: i64,
    /// A human's and an agent's signature are wanted.
    pub(crate) two_keys: bool,
}

/// From the bytes of a file to a lease that counts. Nothing of it is used before all of it is verified.
pub(crate) fn verify(bytes: &[u8], by: &Verifier<'_>) -> Result<Lease, LeaseRefusal> {
    let lease = read(bytes)?;
    let chain: Vec<&Lease> = lease.chain().collect();
    for pair in chain.windows(2) {
        handed_on(pair[0], pair[1])?;
    }
    let Some(first) = chain.last() else { return Err(LeaseRefusal::Malformed("it is empty".into())) };
    issued(first, by)?;
    for lease in &chain {
        timely(lease, by)?;
    }
    Ok(lease)
}

/// The lease that is written there, verified or not.
pub fn read(bytes: &[u8]) -> Result<Lease, LeaseRefusal> {
    let wrong = |what: String| LeaseRefusal::Malformed(what);
    if bytes.len() > MAX_BYTES {
        return Err(wrong(format!("it has more than {MAX_BYTES} bytes")));
    }
    let text = std::str::from_utf8(bytes).map_err(|e| wrong(e.to_string()))?;
    let mut json = serde_json::Deserializer::from_str(text);
    let lease: Lease = serde_path_to_error::deserialize(&mut json).map_err(|e| wrong(e.to_string()))?;
    json.end().map_err(|e| wrong(e.to_string()))?;
    if lease.chain().count() > MAX_CHAIN {
        return Err(wrong(format!("it was handed on more than {} times", MAX_CHAIN - 1)));
    }
    // One way to write it: what was signed are the very bytes that are read, in their order.
    if text_of(&lease)?.trim_end_matches('\n') != text.strip_suffix('\n').unwrap_or(text) {
        return Err(wrong("it is not canonical JSON, as it was signed".into()));
    }
    for lease in lease.chain() {
        let problems = lease.problems();
        if !problems.is_empty() {
            return Err(malformed(&problems));
        }
    }
    Ok(lease)
}

/// A lease of the operator's own keys.
fn issued(lease: &Lease, by: &Verifier<'_>) -> Result<(), LeaseRefusal> {
    let key = |kid: &str| {
        by.trusted.iter().find(|key| key.kid == kid).ok_or_else(|| LeaseRefusal::UnknownKey(kid.to_owned()))
    };
    let signer = key(&lease.sig.kid)?;
    // An agent gives itself nothing.
    if !matches!(signer.role, Role::Issuer | Role::Human) {
        return Err(LeaseRefusal::UnknownKey(lease.sig.kid.clone()));
    }
    if !is_signed_by(&signer.public, &lease.sig, &for_signature(lease)?) {
        return Err(LeaseRefusal::BadSignature(lease.sig.kid.clone()));
    }
    let bytes = for_cosignature(lease)?;
    let mut roles = vec![signer.role];
    for cosigner in &lease.cosigners {
        let trusted = key(&cosigner.kid)?;
        if !is_signed_by(&trusted.public, cosigner, &bytes) {
            return Err(LeaseRefusal::BadSignature(cosigner.kid.clone()));
        }
        roles.push(trusted.role);
    }
    let missing = [Role::Human, Role::Agent].into_iter().find(|role| by.two_keys && !roles.contains(role));
    missing.map_or(Ok(()), |role| Err(LeaseRefusal::Cosigner(role.name())))
}

/// A lease that the holder of another one has made from it.
fn handed_on(lease: &Lease, parent: &Lease) -> Result<(), LeaseRefusal> {
    let Some(holder) = &parent.holder_key else {
        return Err(LeaseRefusal::NotAPart("its parent names no holder who may hand it on".into()));
    };
    let public = unhex(holder).and_then(|bytes| <[u8; 32]>::try_from(bytes).ok());
    let public = public.and_then(|bytes| ed25519_dalek::VerifyingKey::from_bytes(&bytes).ok());
    if public.is_none_or(|public| kid_of(&public) != lease.sig.kid) {
        return Err(LeaseRefusal::UnknownKey(lease.sig.kid.clone()));
    }
    if !is_signed_by(holder, &lease.sig, &for_signature(lease)?) {
        return Err(LeaseRefusal::BadSignature(lease.sig.kid.clone()));
    }
    if let Some(cosigner) = lease.cosigners.first() {
        return Err(LeaseRefusal::UnknownKey(cosigner.kid.clone()));
    }
    is_part(lease, parent)
}

/// Smaller than its parent, and in nothing larger.
pub fn is_part(lease: &Lease, parent: &Lease) -> Result<(), LeaseRefusal> {
    let mut larger = lease.exceeds(parent);
    if at(&lease.expires_at)? > at(&parent.expires_at)? {
        larger.push("expires_at");
    }
    if at(&lease.issued_at)? < at(&parent.issued_at)? {
        larger.push("issued_at");
    }
    if lease.lease_id == parent.lease_id {
        larger.push("lease_id");
    }
    if !larger.is_empty() {
        return Err(LeaseRefusal::NotAPart(format!("larger in {}", larger.join(", "))));
    }
    if lease.is_as_large_as(parent) {
        return Err(LeaseRefusal::NotAPart("it is as large".into()));
    }
    Ok(())
}

fn timely(lease: &Lease, by: &Verifier<'_>) -> Result<(), LeaseRefusal> {
    let (issued, expires) = (at(&lease.issued_at)?, at(&lease.expires_at)?);
    if expires <= issued {
        return Err(LeaseRefusal::Malformed("expires_at is not behind issued_at".into()));
    }
    let seconds = expires.as_second() - issued.as_second();
    if seconds > by.most_minutes * 60 {
        return Err(LeaseRefusal::TooLong { given: (seconds + 59) / 60, most: by.most_minutes });
    }
    if issued > by.now {
        return Err(LeaseRefusal::NotYetValid(lease.issued_at.clone()));
    }
    if expires <= by.now {
        return Err(LeaseRefusal::Expired(lease.expires_at.clone()));
    }
    Ok(())
}

/// A moment as it is written in leases: UTC, and nothing that could be read in two ways.
pub(super) fn at(text: &str) -> Result<Timestamp, LeaseRefusal> {
    let moment = text.parse::<Timestamp>().ok().filter(|at| at.to_string() == text);
    moment.ok_or_else(|| LeaseRefusal::Malformed(format!("`{}` is no moment: give RFC 3339, UTC", text.escape_debug())))
}
