-- name: ArtifactInsert
insert into artifacts (tenant_id, artifact_id, session_id, media_type, size, sealed) values ($1, $2, $3, $4, $5, true)

-- name: ArtifactChunks
insert into artifact_chunks (tenant_id, artifact_id, at, data) select $1, $2, q.at, q.data from unnest($3::bigint[], $4::bytea[]) as q(at, data)

-- name: ArtifactSession
select a.session_id from artifacts a where a.tenant_id = $1 and a.artifact_id = $2

-- name: ValueElsewhere
select jig_value_elsewhere($1, $2)

-- name: ArtifactOpen
insert into artifacts (tenant_id, artifact_id) values ($1, $2) on conflict do nothing

-- name: ArtifactLock
select a.size, a.sealed from artifacts a where a.tenant_id = $1 and a.artifact_id = $2 for no key update

-- name: ArtifactHas
select k.data = $4::bytea from artifact_chunks k where k.tenant_id = $1 and k.artifact_id = $2 and k.at = $3

-- name: ArtifactAppend
with k as (insert into artifact_chunks (tenant_id, artifact_id, at, data) values ($1, $2, $3, $4) returning length(data) as size)
update artifacts a set size = a.size + k.size from k where a.tenant_id = $1 and a.artifact_id = $2

-- name: ArtifactRead
-- The bytes from offset $3 on, at most $4. No chunk is longer than 1 MiB.
select a.size, coalesce((
    select string_agg(substring(k.data from greatest($3 - k.at, 0)::int + 1
            for least($3 + $4 - greatest(k.at, $3), length(k.data))::int), ''::bytea order by k.at)
    from artifact_chunks k
    where k.tenant_id = a.tenant_id and k.artifact_id = a.artifact_id and k.at > $3 - 1048576 and k.at < $3 + $4
), ''::bytea) as data
from artifacts a where a.tenant_id = $1 and a.artifact_id = $2

-- name: DocumentRetire
update documents d set current = false
where d.tenant_id = $1 and d.kind = $2 and d.name = $3 and d.current and d.version <> $4

-- name: DocumentPut
-- The document belongs to the tenant from now on, not to a bundle.
insert into documents (tenant_id, kind, name, version, body, current, untrusted) values ($1, $2, $3, $4, $5, true, false)
on conflict (tenant_id, kind, name, version) do update set current = true, bundle = '', untrusted = false

-- name: DocumentsDiffer
-- Returns the given documents whose version exists with a different body.
select d.kind || ' ' || d.name from unnest($2::text[], $3::text[], $4::text[], $5::bytea[]) as q(kind, name, version, body)
    join documents d on d.tenant_id = $1 and d.kind = q.kind and d.name = q.name and d.version = q.version
where d.body <> q.body order by 1

-- name: DocumentGet
select d.body, d.tenant_id <> '_global' and d.untrusted is not false as untrusted from documents d
where d.tenant_id in ($1, '_global') and d.kind = $2 and d.name = $3 and d.current
order by d.tenant_id = '_global' limit 1

-- name: DocumentKeep
insert into documents (tenant_id, kind, name, version, body, current) values ($1, $2, $3, $4, $5, false)
on conflict (tenant_id, kind, name, version) do nothing

-- name: DocumentAt
select d.body from documents d
where d.tenant_id in ($1, '_global') and d.kind = $2 and d.name = $3 and d.version = $4
order by d.tenant_id = '_global' limit 1

-- name: DocumentTrusted
-- Whether somebody has registered the version and its text is no outsider's.
select d.tenant_id = '_global' or d.untrusted is false from documents d
where d.tenant_id in ($1, '_global') and d.kind = $2 and d.name = $3 and d.version = $4
order by d.tenant_id = '_global' limit 1

-- name: DocumentsSeen
-- The current versions that a tenant sees, of one kind or of all.
select distinct on (d.kind collate "C", d.name collate "C") d.kind, d.name, d.version, true as current, d.bundle, d.tenant_id = '_global' as shared, d.created_at from documents d
where d.tenant_id in ($1, '_global') and d.current and ($2 = '' or d.kind = $2) and (d.kind collate "C", d.name collate "C") > ($3, $4)
order by d.kind collate "C", d.name collate "C", d.tenant_id = '_global' limit $5

-- name: DocumentVersions
-- The limit leaves out no current version, however old it is. A current version of _global is not seen by a tenant that has a current version of
-- its own.
select v.kind, v.name, v.version, v.current and (v.tenant_id = $1 or not exists (
    select from documents o where o.tenant_id = $1 and o.kind = v.kind and o.name = v.name and o.current
)) as current, v.bundle, v.tenant_id = '_global' as shared, v.created_at
from (
    select d.* from documents d where d.tenant_id in ($1, '_global') and d.kind = $2 and d.name = $3 and ($4 = '' or d.version = $4)
    order by d.current desc, d.created_at desc, d.version, d.tenant_id = '_global' limit $5
) v
order by v.created_at desc, v.version, v.tenant_id = '_global'

-- name: DocumentsCurrent
select distinct on (d.name) d.kind, d.name, d.version from documents d
where d.tenant_id in ($1, '_global') and d.kind = $2 and d.current
order by d.name, d.tenant_id = '_global'

-- name: DocumentNames
select distinct d.name from documents d where d.tenant_id in ($1, '_global') and d.kind = $2 and d.current order by d.name
