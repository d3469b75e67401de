//! Keys of those who use the service: whose they are, what they may do, and never the secret itself.

use std::fs::File;
use std::io::Read;

use hotcell_contract::{ApiKey, KeyScope, is_id};
use rusqlite::{OptionalExtension, Row, params};
use serde_json::json;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use super::store::{Store, StoreError};
use super::{State, StateError, now};
use crate::keys::{hex, unhex};

pub(super) const SCHEMA: &str = "
ALTER TABLE records ADD COLUMN owner_is_service BIGINT;
CREATE TABLE api_keys (
  key_id TEXT PRIMARY KEY, tenant_id TEXT NOT NULL, scopes TEXT NOT NULL, policies TEXT NOT NULL, secret_sha256 TEXT NOT NULL,
  created_at TEXT NOT NULL, created_by TEXT NOT NULL, revoked_at TEXT, revoked_by TEXT);
";

const COLUMNS: &str = "key_id, tenant_id, scopes, policies, created_at, created_by, revoked_at, revoked_by";
/// Before everything that is one of our tokens, so that whoever finds one knows what it is.
const PREFIX: &str = "hc_";
const ID_BYTES: usize = 6;
/// So many random bytes can't be guessed, which is why a fast hash of them is enough: a slow one protects passwords, which
/// can, and would be paid with every request.
const SECRET_BYTES: usize = 32;

impl State {
    /// A new key, and its token, which is in no other place.
    pub fn make_api_key(
        &mut self,
        tenant_id: &str,
        scopes: &[KeyScope],
        policies: &[String],
        by: &str,
    ) -> Result<(ApiKey, String), StateError> {
        if let Some(bad) = [tenant_id].into_iter().chain(policies.iter().map(String::as_str)).find(|id| !is_id(id)) {
            return Err(StateError::Unknown { what: "tenant or policy that can be called", id: bad.to_owned() });
        }
        let mut random = [0u8; ID_BYTES + SECRET_BYTES];
        let failed = |error| StateError::Directory { path: self.dir.clone(), error };
        File::open("/dev/urandom").and_then(|mut file| file.read_exact(&mut random)).map_err(failed)?;
        let (id, secret) = random.split_at(ID_BYTES);
        let key = ApiKey {
            key_id: hex(id),
            tenant_id: tenant_id.to_owned(),
            scopes: scopes.to_vec(),
            policies: policies.to_vec(),
            created_at: now(),
            created_by: by.to_owned(),
            revoked_at: None,
            revoked_by: None,
        };
        let data =
            json!({ "key_id": key.key_id, "tenant_id": tenant_id, "scopes": scopes, "policies": policies, "by": by });
        self.audit.append("key_event.MADE", data)?;
        self.store.put_api_key(&key, &hex(&Sha256::digest(secret)))?;
        Ok((key, format!("{PREFIX}{}_{}", hex(id), hex(secret))))
    }

    /// All of them, newest first, revoked ones too.
    pub fn api_keys(&self) -> Result<Vec<ApiKey>, StateError> {
        Ok(self.store.api_keys()?)
    }

    /// Whether there ever was one. When all are revoked, nobody may do anything: that is not the same as none.
    pub fn has_api_keys(&self) -> Result<bool, StateError> {
        Ok(self.store.has_api_keys()?)
    }

    /// Whether it was made here, and not revoked since.
    pub fn is_api_key(&self, key_id: &str) -> Result<bool, StateError> {
        Ok(self.store.api_key(key_id)?.is_some_and(|(key, _)| key.revoked_at.is_none()))
    }

    pub fn revoke_api_key(&mut self, key_id: &str, by: &str) -> Result<(), StateError> {
        let is_there = self.store.revoke_api_key(key_id, by, &now())?;
        if !is_there {
            return Err(StateError::Unknown { what: "key that is not revoked", id: key_id.to_owned() });
        }
        Ok(self.audit.append("key_event.REVOKED", json!({ "key_id": key_id, "by": by }))?)
    }

    /// Whose token this is. The comparison takes as long for a wrong secret, and for an id that nobody has, as for a right one.
    pub fn key_of_token(&self, token: &str) -> Result<Option<ApiKey>, StateError> {
        let parts = token.strip_prefix(PREFIX).and_then(|rest| rest.split_once('_'));
        let (id, secret) = parts.unwrap_or_default();
        let given = Sha256::digest(unhex(secret).unwrap_or_default());
        let found = self.store.api_key(id)?;
        let known = found.as_ref().and_then(|(_, hash)| unhex(hash)).unwrap_or_else(|| vec![0; given.len()]);
        let is_same: bool = known.as_slice().ct_eq(given.as_slice()).into();
        Ok(found.filter(|(key, _)| is_same && key.revoked_at.is_none()).map(|(key, _)| key))
    }
}

impl Store {
    fn put_api_key(&self, key: &ApiKey, hash: &str) -> Result<(), StoreError> {
        let scopes = key.scopes.iter().map(|scope| scope.name()).collect::<Vec<_>>().join(",");
        self.db.execute(
            "INSERT INTO api_keys (key_id, tenant_id, scopes, policies, secret_sha256, created_at, created_by) \
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
            params![key.key_id, key.tenant_id, scopes, key.policies.join(","), hash, key.created_at, key.created_by],
        )?;
        Ok(())
    }

    fn api_keys(&self) -> Result<Vec<ApiKey>, StoreError> {
        let mut asked = self.db.prepare_cached(&format!("SELECT {COLUMNS} FROM api_keys ORDER BY created_at DESC"))?;
        let rows = asked.query_map([], key_of)?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    fn has_api_keys(&self) -> Result<bool, StoreError> {
        let mut asked = self.db.prepare_cached("SELECT EXISTS (SELECT 1 FROM api_keys)")?;
        Ok(asked.query_row([], |row| row.get(0))?)
    }

    fn api_key(&self, id: &str) -> Result<Option<(ApiKey, String)>, StoreError> {
        let mut asked =
            self.db.prepare_cached(&format!("SELECT {COLUMNS}, secret_sha256 FROM api_keys WHERE key_id = ?1"))?;
        Ok(asked.query_row([id], |row| Ok((key_of(row)?, row.get(8)?))).optional()?)
    }

    fn revoke_api_key(&self, id: &str, by: &str, at: &str) -> Result<bool, StoreError> {
        let sql = "UPDATE api_keys SET revoked_at = ?2, revoked_by = ?3 WHERE key_id = ?1 AND revoked_at IS NULL";
        Ok(self.db.execute(sql, params![id, at, by])? > 0)
    }
}

fn key_of(row: &Row<'_>) -> rusqlite::Result<ApiKey> {
    let words =
        |text: String| -> Vec<String> { text.split(',').filter(|word| !word.is_empty()).map(str::to_owned).collect() };
    Ok(ApiKey {
        key_id: row.get(0)?,
        tenant_id: row.get(1)?,
        scopes: words(row.get(2)?).iter().filter_map(|name| KeyScope::named(name)).collect(),
        policies: words(row.get(3)?),
        created_at: row.get(4)?,
        created_by: row.get(5)?,
        revoked_at: row.get(6)?,
        revoked_by: row.get(7)?,
    })
}
