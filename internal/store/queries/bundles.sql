-- name: Serialize
-- Locks a name until the transaction ends. Transactions that use Serialize or SerializeShared with the same name wait.
select pg_advisory_xact_lock(hashtextextended($1::text, 0))

-- name: SerializeShared
-- Shares the lock of Serialize: only transactions that use Serialize with the same name wait.
select pg_advisory_xact_lock_shared(hashtextextended($1::text, 0))

-- name: BundlesGet
select b.name, b.hash, b.manifest, b.documents, b.installed_at, b.installed_by from bundles b
where b.tenant_id = $1 and b.removed_at is null order by b.name collate "C"

-- name: BundleNames
select b.name from bundles b where b.tenant_id = $1 and b.removed_at is null order by b.name collate "C"

-- name: BundlePut
insert into bundles as b (tenant_id, name, hash, manifest, documents, installed_by) values ($1, $2, $3, $4, $5, $6)
on conflict (tenant_id, name) do update
    set hash = excluded.hash, manifest = excluded.manifest, documents = excluded.documents,
        installed_by = excluded.installed_by, installed_at = clock_timestamp(), removed_at = null
returning b.installed_at

-- name: BundleRemove
update bundles b set removed_at = clock_timestamp() where b.tenant_id = $1 and b.name = $2 and b.removed_at is null

-- name: DocumentsHold
-- Locks the current versions of some documents, so that they stay current until the transaction ends.
select d.kind, d.name, d.version, d.bundle from documents d
where d.tenant_id = $1 and d.current and (d.kind, d.name) in (select q.kind, q.name from unnest($2::text[], $3::text[]) as q(kind, name))
order by d.kind, d.name for no key update of d

-- name: DocumentsOwn
-- Reads what DocumentsHold locks.
select d.kind, d.name, d.version, d.bundle from documents d
where d.tenant_id = $1 and d.current and (d.kind, d.name) in (select q.kind, q.name from unnest($2::text[], $3::text[]) as q(kind, name))

-- name: DocumentsShared
-- Reads the current versions of some documents of all tenants.
select d.kind, d.name, d.version from documents d
where d.tenant_id = '_global' and d.current and (d.kind, d.name) in (select q.kind, q.name from unnest($1::text[], $2::text[]) as q(kind, name))

-- name: DocumentsRetire
-- Names the versions, so that a version that became current in the meantime stays current. The statements that follow then fail because
-- of the duplicate.
update documents d set current = false from unnest($2::text[], $3::text[], $4::text[]) as q(kind, name, version)
where d.tenant_id = $1 and d.kind = q.kind and d.name = q.name and d.version = q.version and d.current

-- name: DocumentsPut
-- Registers documents for the call $8 of the session $7. The texts may be an outsider's if the call's arguments were not traced in a session that had
-- read untrusted data, unless a person has approved exactly this call with the parts marked that were not.
with c as (
    select coalesce((c.flow ->> 'read_untrusted')::boolean, false) and not coalesce((c.flow ->> 'traced')::boolean, false) as untraced,
        coalesce((c.flow ->> 'marked')::boolean, false) and exists (
            select from approvals a
            where a.tenant_id = $1 and a.session_id = $7 and a.call_id = $8 and a.kind = 'approval' and a.status in ('approved', 'consumed')
                and a.grant_id = '' and a.digest = c.digest and a.approved_digest in ('', a.digest)) as vouched
    from calls c where c.tenant_id = $1 and c.session_id = $7 and c.call_id = $8
), doubt as (
    select coalesce((select c.untraced and not c.vouched from c), false) as untrusted, coalesce((select c.untraced and c.vouched from c), false) as vouched
)
insert into documents (tenant_id, kind, name, version, body, current, bundle, untrusted)
select $1, q.kind, q.name, q.version, q.body, true, $2, doubt.untrusted
from unnest($3::text[], $4::text[], $5::text[], $6::bytea[]) as q(kind, name, version, body) cross join doubt
on conflict (tenant_id, kind, name, version) do update set current = true, bundle = excluded.bundle,
    untrusted = not (select doubt.vouched from doubt) and coalesce(documents.untrusted, excluded.untrusted)

-- name: DocumentsGive
-- Makes existing versions current and gives each one to a bundle.
update documents d set current = true, bundle = q.bundle
from unnest($2::text[], $3::text[], $4::text[], $5::text[]) as q(kind, name, version, bundle)
where d.tenant_id = $1 and d.kind = q.kind and d.name = q.name and d.version = q.version

-- name: EntitiesDefault
-- Adds default values for the fields that the entities of a type lack.
update entities e set content = $3::jsonb || e.content, revision = e.revision + 1, updated_at = clock_timestamp()
where e.tenant_id = $1 and e.type = $2 and e.deleted_at is null and not e.content ?& $4::text[]

-- name: TypesChanged
-- Returns the given entity types that have changed: those whose current version is not the given one. A type given without a version has
-- changed if it has entities.
select q.name from unnest($2::text[], $3::text[]) as q(name, version)
where case q.version
    when '' then exists (select from entities e where e.tenant_id = $1 and e.type = q.name and e.deleted_at is null)
    else q.version <> (
        select d.version from documents d where d.tenant_id in ($1, '_global') and d.kind = 'entity_type' and d.name = q.name and d.current
        order by d.tenant_id = '_global' limit 1)
    end
order by q.name
