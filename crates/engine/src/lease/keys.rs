//! Keys of leases: whose signatures count here, and the secret halves that were made here.
//!
//! Of each role the current key and the one before it are trusted, so that what was signed just before a rotation is still
//! good.

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use ed25519_dalek::{Signature, Signer, SigningKey, VerifyingKey};
use hotcell_contract::{Signed, is_hex};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::files::{open_regular, read_regular, read_text};
use crate::keys::{hex, unhex};

pub(super) const ALG: &str = "Ed25519";
const MAX_KEY: u64 = 4096;
/// A key has some 200 bytes, and there are two of each role.
const MAX_LIST: u64 = 64 << 10;

/// What a key stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Signs leases.
    Issuer,
    /// A person: signs leases, and cosigns them.
    Human,
    /// An agent: cosigns only.
    Agent,
    /// Whoever holds a lease and may hand on a smaller one: trusted for nothing else.
    Holder,
}

impl Role {
    pub fn name(self) -> &'static str {
        match self {
            Role::Issuer => "issuer",
            Role::Human => "human",
            Role::Agent => "agent",
            Role::Holder => "holder",
        }
    }
}

/// A key that counts here.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Trusted {
    pub kid: String,
    pub role: Role,
    pub public: String,
    pub since: String,
    /// Of its role; the other one is the previous.
    pub current: bool,
}

/// A secret half, in a file of its own that nobody else may read.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Secret {
    kid: String,
    role: Role,
    public: String,
    secret: String,
}

pub struct SecretKey {
    key: SigningKey,
    pub role: Role,
}

#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    #[error("the key file `{}` cannot be used: {why}", path.display())]
    File { path: PathBuf, why: String },
    #[error("there is no {} key here: make one with `hotcell lease keygen`", .0.name())]
    None(Role),
}

fn unusable(path: &Path) -> impl Fn(io::Error) -> KeyError + use<'_> {
    |error| KeyError::File { path: path.to_owned(), why: error.to_string() }
}

pub(crate) fn kid_of(public: &VerifyingKey) -> String {
    hex(&Sha256::digest(public.as_bytes())[..8])
}

impl SecretKey {
    /// From a file that only its owner can read.
    pub fn read(path: &Path) -> Result<SecretKey, KeyError> {
        let wrong = |why: &str| KeyError::File { path: path.to_owned(), why: why.to_owned() };
        let file = open_regular(path).map_err(unusable(path))?;
        if file.metadata().map_err(unusable(path))?.mode() & 0o077 != 0 {
            return Err(wrong("others can read it: chmod 600 it"));
        }
        let text = read_text(&file, MAX_KEY).map_err(|_| wrong("it is no key"))?;
        let secret: Secret = serde_json::from_str(&text).map_err(|_| wrong("it is no key"))?;
        let bytes = unhex(&secret.secret).and_then(|bytes| <[u8; 32]>::try_from(bytes).ok());
        let key = SigningKey::from_bytes(&bytes.ok_or_else(|| wrong("it is no key"))?);
        if hex(key.verifying_key().as_bytes()) != secret.public {
            return Err(wrong("its two halves do not belong together"));
        }
        Ok(SecretKey { key, role: secret.role })
    }

    /// The public half, in hex.
    pub fn public(&self) -> String {
        hex(self.key.verifying_key().as_bytes())
    }

    pub fn kid(&self) -> String {
        kid_of(&self.key.verifying_key())
    }

    pub(crate) fn sign(&self, bytes: &[u8]) -> Signed {
        Signed { alg: ALG.into(), kid: self.kid(), value: hex(&self.key.sign(bytes).to_bytes()) }
    }
}

/// Whether `signed` is this key's signature of `bytes`, and of nothing that merely looks like it.
pub(crate) fn is_signed_by(public: &str, signed: &Signed, bytes: &[u8]) -> bool {
    let key = unhex(public).filter(|_| is_hex(public, 64)).and_then(|b| <[u8; 32]>::try_from(b).ok());
    let key = key.and_then(|bytes| VerifyingKey::from_bytes(&bytes).ok());
    let sig = unhex(&signed.value).filter(|_| is_hex(&signed.value, 128));
    let sig = sig.and_then(|bytes| Signature::from_slice(&bytes).ok());
    match (key, sig) {
        (Some(key), Some(sig)) => {
            signed.alg == ALG && kid_of(&key) == signed.kid && key.verify_strict(bytes, &sig).is_ok()
        }
        _ => false,
    }
}

/// The keys of one state directory.
pub struct Keys {
    dir: PathBuf,
}

impl Keys {
    pub(crate) fn new(state: &Path) -> Keys {
        Keys { dir: state.join("keys") }
    }

    fn list(&self) -> PathBuf {
        self.dir.join("leases.json")
    }

    pub fn trusted(&self) -> Result<Vec<Trusted>, KeyError> {
        let path = self.list();
        match read_regular(&path, MAX_LIST) {
            Ok(bytes) => serde_json::from_slice(&bytes)
                .map_err(|e| KeyError::File { path, why: format!("it is no list of keys: {e}") }),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(vec![]),
            Err(e) => Err(unusable(&path)(e)),
        }
    }

    /// Where the secret half of a key is that was made here.
    fn secret(&self, kid: &str) -> PathBuf {
        self.dir.join(format!("{kid}.key"))
    }

    /// The current key of a role.
    pub fn current(&self, role: Role) -> Result<SecretKey, KeyError> {
        let key =
            self.trusted()?.into_iter().find(|key| key.current && key.role == role).ok_or(KeyError::None(role))?;
        SecretKey::read(&self.secret(&key.kid))
    }

    /// A new key, whose secret half goes to `out` or stays here. Of a holder nothing stays: his key is in his lease.
    pub(crate) fn make(&self, role: Role, out: Option<&Path>, now: &str) -> Result<Trusted, KeyError> {
        let mut bytes = [0u8; 32];
        let random = Path::new("/dev/urandom");
        fs::File::open(random)
            .and_then(|mut file| io::Read::read_exact(&mut file, &mut bytes))
            .map_err(unusable(random))?;
        let key = SigningKey::from_bytes(&bytes);
        let (kid, public) = (kid_of(&key.verifying_key()), hex(key.verifying_key().as_bytes()));
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.dir).map_err(unusable(&self.dir))?;
        let path = out.map_or_else(|| self.secret(&kid), Path::to_owned);
        let secret = Secret { kid: kid.clone(), role, public: public.clone(), secret: hex(&bytes) };
        write_new(&path, &secret).map_err(unusable(&path))?;
        let new = Trusted { kid, role, public, since: now.to_owned(), current: true };
        if role != Role::Holder {
            let rotated = self.rotate(&new);
            if rotated.is_err() {
                let _ = fs::remove_file(&path);
            }
            rotated?;
        }
        Ok(new)
    }

    fn rotate(&self, new: &Trusted) -> Result<(), KeyError> {
        let lock = fs::File::open(&self.dir).map_err(unusable(&self.dir))?;
        rustix::fs::flock(&lock, rustix::fs::FlockOperation::LockExclusive)
            .map_err(|e| unusable(&self.dir)(e.into()))?;
        let mut keys = self.trusted()?;
        keys.retain(|key| key.role != new.role || key.current);
        keys.iter_mut().filter(|key| key.role == new.role).for_each(|key| key.current = false);
        keys.push(new.clone());
        let path = self.list();
        let staged = self.dir.join(format!(".leases-{}", std::process::id()));
        let written = serde_json::to_vec_pretty(&keys).map_err(io::Error::other).and_then(|bytes| {
            let mut file = fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&staged)?;
            file.write_all(&bytes)?;
            file.sync_all()?;
            fs::rename(&staged, &path)
        });
        written.map_err(|e| {
            let _ = fs::remove_file(&staged);
            unusable(&path)(e)
        })
    }
}

/// Never over something that is there, and never for others to read.
fn write_new(path: &Path, secret: &Secret) -> io::Result<()> {
    let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(format!("{}\n", serde_json::to_string(secret)?).as_bytes())?;
    file.sync_all()
}
