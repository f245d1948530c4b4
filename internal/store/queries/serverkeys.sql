-- name: ServerKeyPut
insert into server_keys (key_id, certificate) values ($1, $2) on conflict do nothing

-- name: ServerKeys
select k.key_id as id, k.certificate, k.created_at, k.revoked_at from server_keys k order by k.created_at, k.key_id

-- name: ServerKeyRevoke
-- Revoking a key again changes nothing.
update server_keys k set revoked_at = coalesce(k.revoked_at, now()) where k.key_id = $1
