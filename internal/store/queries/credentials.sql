-- fragment: credential_columns
c.tenant_id as tenant, c.credential_id as id, c.kind, c.name, c.principal, c.scopes, c.created_at, c.expires_at, c.revoked_at, c.used_at, c.created_by, c.revoked_by,
    c.maker, jsonb_build_object('kind', c.made_with_kind, 'id', c.made_with_id) as made_with, c.persons, c.issuer, c.subject, c.groups, c.session_id as session, c.tool, c.origin

-- name: CredentialInsert
-- It expires $9 from now, but not later than $8; both may be null. Nothing is inserted if a login came of the same attempt before.
insert into credentials as c (tenant_id, credential_id, kind, hash, name, principal, scopes, expires_at, created_by, maker, made_with_kind, made_with_id, persons,
    issuer, subject, groups, attempt, session_id, tool, origin)
values ($1, $2, $3, $4, $5, $6, $7, least($8::timestamptz, clock_timestamp() + $9::interval), $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21)
on conflict (attempt) do nothing
returning {{credential_columns}}, null::jsonb as lineage

-- name: CredentialFind
select {{credential_columns}}, q.lineage from jig_credential($1, $2, $3) q, lateral (select (q.found).*) c

-- name: CredentialsValid
select q from jig_credentials_valid($1::text[], $2) q

-- name: CredentialsOf
select {{credential_columns}}, null::jsonb as lineage from credentials c where c.tenant_id = $1 and c.kind = any($2::text[]) order by c.created_at, c.credential_id

-- name: EmbedTokensOf
select {{credential_columns}}, null::jsonb as lineage from credentials c
where c.tenant_id = $1 and c.kind = 'embed_token' and (c.created_at, c.credential_id) < ($2, $3) order by c.created_at desc, c.credential_id desc limit $4

-- name: CredentialRevoke
-- Returns whether the credential was not revoked until now. Revoking one again changes nothing.
with was as (
    select c.revoked_at is null as valid from credentials c where c.tenant_id = $1 and c.kind = $2 and c.credential_id = $3 for update
), done as (
    update credentials c set revoked_at = now(), revoked_by = $4 where c.tenant_id = $1 and c.kind = $2 and c.credential_id = $3 and c.revoked_at is null
)
select w.valid from was w

-- name: CredentialsForget
select jig_forget_credentials($1)

-- name: CredentialPersons
-- Notes the people among a credential's principals, when it is used for the first time since the tenant's document lists them.
update credentials c set persons = $3 where c.tenant_id = $1 and c.credential_id = $2

-- name: APIKeyLineage
select q.valid, q.lineage from jig_key_lineage($1, $2) q

-- name: APIKeyTakeOver
update credentials c set maker = $3, made_with_kind = $4, made_with_id = $5, created_by = $6, persons = $7, hash = $8
where c.tenant_id = $1 and c.credential_id = $2 and c.kind = 'api_key' and c.revoked_at is null and (c.expires_at is null or c.expires_at > now())
returning c.credential_id

-- name: CredentialEnded
select {{credential_columns}}, q.lineage, q.reason from jig_ended_credential($1, $2, $3) q, lateral (select (q.found).*) c

-- name: CredentialEventPut
-- Within a minute, 100 rows of a kind and source have details, and 1,000 of a kind. Everything else is counted in one further row, which has none.
with room as (
    select exists (select from credential_events e where e.tenant_id = $1 and e.kind = $2 and e.minute = date_trunc('minute', now()) and e.digest = $8)
        or (select count(*) from (
            select from credential_events e where e.tenant_id = $1 and e.kind = $2 and e.minute = date_trunc('minute', now()) and e.source = $9
            limit 100) q) < 100
        and (select count(*) from (
            select from credential_events e where e.tenant_id = $1 and e.kind = $2 and e.minute = date_trunc('minute', now()) limit 1000) q) < 1000 as free
)
insert into credential_events as e (tenant_id, kind, reason, credential_kind, credential_id, principal, address, minute, digest, source)
select $1, $2, case when r.free then $3::text else '' end, case when r.free then $4::text else '' end, case when r.free then $5::text else '' end,
    case when r.free then $6::text else '' end, case when r.free then $7::text else '' end, date_trunc('minute', now()),
    case when r.free then $8::bytea else sha256('') end, case when r.free then $9::text else '' end
from room r
on conflict (tenant_id, kind, minute, digest) do update set count = e.count + 1, last_at = clock_timestamp()

-- name: CredentialEventsForget
select jig_forget_credential_events()

-- name: CredentialEventsOf
-- plan: custom
select e.id, e.tenant_id as tenant, e.kind, e.reason, e.credential_kind, e.credential_id, e.principal, e.address, e.count, e.minute, e.last_at
from credential_events e
where e.tenant_id = $1 and ($2::text = '' or e.kind = $2) and ($3::text = '' or e.principal = $3) and e.id < $4
order by e.id desc limit $5
