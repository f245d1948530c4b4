-- name: EmbedTokensPrune
-- Tokens that were made a week ago are not listed any more.
delete from embed_tokens t where t.tenant_id = $1 and t.created_at < now() - interval '7 days'

-- name: EmbedTokenInsert
-- A token ends no later than the credential that makes it; null means that this one does not expire.
insert into embed_tokens (tenant_id, token_id, hash, session_id, tool, origin, principal, maker_kind, maker_id, issuer, subject, groups, expires_at)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, least(clock_timestamp() + $13::interval, $14::timestamptz))
returning tenant_id, token_id, session_id, tool, origin, principal, maker_kind, maker_id, issuer, subject, groups, created_at, expires_at, revoked_at, revoked_by

-- name: EmbedTokenFind
select q.tenant_id, q.token_id, q.session_id, q.tool, q.origin, q.principal, q.maker_kind, q.maker_id, q.issuer, q.subject, q.groups, q.created_at, q.expires_at,
    q.revoked_at, q.revoked_by, case when q.maker_kind = 'api_key' then (select l.links from jig_key_lineage(q.tenant_id, q.maker_id) l) end as links
from jig_embed_token($1, $2) q

-- name: EmbedTokensValid
select q from jig_embed_tokens_valid($1::text[]) q

-- name: EmbedOrigin
select jig_embed_origin($1)

-- name: EmbedTokensOf
select t.tenant_id, t.token_id, t.session_id, t.tool, t.origin, t.principal, t.maker_kind, t.maker_id, t.issuer, t.subject, t.groups, t.created_at, t.expires_at,
    t.revoked_at, t.revoked_by
from embed_tokens t where t.tenant_id = $1 and (t.created_at, t.token_id) < ($2, $3) order by t.created_at desc, t.token_id desc limit $4

-- name: EmbedTokenRevoke
-- Returns whether the token was not revoked until now. Revoking a token again changes nothing.
with was as (
    select t.revoked_at is null as valid from embed_tokens t where t.tenant_id = $1 and t.token_id = $2 for update
), done as (
    update embed_tokens t set revoked_at = now(), revoked_by = $3 where t.tenant_id = $1 and t.token_id = $2 and t.revoked_at is null
)
select w.valid from was w
