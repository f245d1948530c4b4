-- name: CredentialEventPut
-- Within a minute, 100 rows of a kind have details. Everything else is counted in one further row, which has none.
with room as (
    select exists (select from credential_events e where e.tenant_id = $1 and e.kind = $2 and e.minute = date_trunc('minute', now()) and e.digest = $8)
        or (select count(*) from (
            select from credential_events e where e.tenant_id = $1 and e.kind = $2 and e.minute = date_trunc('minute', now()) limit 100) q) < 100 as free
)
insert into credential_events as e (tenant_id, kind, reason, credential_kind, credential_id, principal, address, minute, digest)
select $1, $2, case when r.free then $3::text else '' end, case when r.free then $4::text else '' end, case when r.free then $5::text else '' end,
    case when r.free then $6::text else '' end, case when r.free then $7::text else '' end, date_trunc('minute', now()),
    case when r.free then $8::bytea else sha256('') end
from room r
on conflict (tenant_id, kind, minute, digest) do update set count = e.count + 1, last_at = clock_timestamp()

-- name: CredentialEventsForget
select jig_forget_credential_events()

-- name: CredentialEventsOf
-- plan: custom
select e.id, e.kind, e.reason, e.credential_kind, e.credential_id, e.principal, e.address, e.count, e.minute, e.last_at
from credential_events e
where e.tenant_id = $1 and ($2::text = '' or e.kind = $2) and ($3::text = '' or e.principal = $3) and e.id < $4
order by e.id desc limit $5

-- name: CredentialEnded
select q.tenant_id, q.kind, q.reason, q.principal, q.issuer, q.subject from jig_ended_credential($1, $2, $3) q
