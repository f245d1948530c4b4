-- name: APIKeyInsert
insert into api_keys (tenant_id, key_id, name, principal, scopes, hash, expires_at, created_by, maker, made_with_kind, made_with_id, persons)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)
returning created_at

-- name: APIKeyFind
select q.tenant_id, q.key_id, q.name, q.principal, q.scopes, q.created_at, q.expires_at, q.maker, q.links from jig_api_key($1, $2) q

-- name: APIKeysValid
select q from jig_api_keys_valid($1::text[]) q

-- name: APIKeysOf
select k.tenant_id, k.key_id, k.name, k.principal, k.scopes, k.created_at, k.expires_at, k.maker, k.revoked_at, k.used_at, k.created_by, k.revoked_by,
    k.made_with_kind, k.made_with_id, k.persons
from api_keys k where k.tenant_id = $1 order by k.created_at, k.key_id

-- name: APIKeyPersons
-- Notes the people among a key's principals, when it is used for the first time since the tenant's document lists them.
update api_keys k set persons = $3 where k.tenant_id = $1 and k.key_id = $2

-- name: APIKeyLineage
select q.stands, q.links from jig_key_lineage($1, $2) q

-- name: APIKeyTakeOver
update api_keys k set maker = $3, made_with_kind = $4, made_with_id = $5, created_by = $6, persons = $7, hash = $8
where k.tenant_id = $1 and k.key_id = $2 and k.revoked_at is null and (k.expires_at is null or k.expires_at > now())
returning k.key_id

-- name: APIKeyRevoke
-- Returns whether the key was valid until now. Revoking a key again changes nothing.
with was as (
    select k.revoked_at is null as valid from api_keys k where k.tenant_id = $1 and k.key_id = $2 for update
), done as (
    update api_keys k set revoked_at = now(), revoked_by = $3 where k.tenant_id = $1 and k.key_id = $2 and k.revoked_at is null
)
select w.valid from was w

-- name: APIKeysRevokeNamed
update api_keys k set revoked_at = now() where k.tenant_id = $1 and k.name = $2 and k.revoked_at is null returning k.key_id
