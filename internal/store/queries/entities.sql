-- fragment: entity
e.tenant_id as tenant, e.entity_id as id, e.type, e.type_version, e.title, e.content, e.provenance, e.revision, e.session_id, e.call_id as call,
    e.created_at, e.updated_at, e.untrusted

-- name: EntityInsert
insert into entities as e (tenant_id, entity_id, type, type_version, title, content, provenance, bundle, key, session_id, call_id, untrusted)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)
on conflict (tenant_id, key) where key <> '' do nothing
returning {{entity}}

-- name: EntityTypeVersion
-- The current version of a type; no row if the type has been retired.
select d.version from documents d
where d.tenant_id in ($1, '_global') and d.kind = 'entity_type' and d.name = $2 and d.current
order by d.tenant_id = '_global' limit 1

-- name: EntityByKey
select {{entity}} from entities e where e.tenant_id = $1 and e.key = $2 and e.key <> ''

-- name: EntitiesGet
select {{entity}} from entities e where e.tenant_id = $1 and e.entity_id = any($2::text[]) and e.deleted_at is null

-- name: EntityTypeOf
select e.type from entities e where e.tenant_id = $1 and e.entity_id = $2

-- name: EntityUpdate
update entities e
set content = (e.content || $3::jsonb) - $4::text[], provenance = (e.provenance - $5::text[]) || $6::jsonb,
    title = coalesce($7::text, e.title), type_version = coalesce(nullif($8::text, ''), e.type_version),
    revision = e.revision + 1, patch_key = $9::text, untrusted = e.untrusted or $11, updated_at = clock_timestamp()
where e.tenant_id = $1 and e.entity_id = $2 and e.deleted_at is null
    and ($10::bigint = 0 or e.revision = $10) and ($9 = '' or e.patch_key <> $9)
returning {{entity}}

-- name: EntityDistrust
update entities e set untrusted = true where e.tenant_id = $1 and e.entity_id = $2 and not e.untrusted

-- name: EntitiesUntrusted
select exists (select from entities e where e.tenant_id = $1 and e.entity_id = any($2::text[]) and e.untrusted)

-- name: EntityPatchKey
select e.patch_key from entities e where e.tenant_id = $1 and e.entity_id = $2 and e.deleted_at is null

-- name: EntityDelete
update entities e set deleted_at = clock_timestamp(), updated_at = clock_timestamp(), revision = e.revision + 1
where e.tenant_id = $1 and e.entity_id = $2 and e.deleted_at is null and ($3::bigint = 0 or e.revision = $3)

-- name: EntityState
select e.deleted_at is not null as deleted, e.revision from entities e where e.tenant_id = $1 and e.entity_id = $2

-- name: EntityCounts
select e.type, count(*) as count, max(e.updated_at) as updated_at from entities e
where e.tenant_id = $1 and e.deleted_at is null group by e.type order by e.type collate "C"

-- name: EntitiesElsewhere
select q.id from unnest($1::text[]) with ordinality q(id, n) where jig_entity_elsewhere(q.id) order by q.n

-- name: EntitiesFiltered
-- The store appends the filter, the order and the limits of the page.
select {{entity}} from entities e where e.tenant_id = $1 and e.type = $2 and e.deleted_at is null

-- name: EntitiesSearched
-- Finds entities by their own words or by the best chunk of their texts. Snippets are made only for the rows that are returned.
with q as (select websearch_to_tsquery('simple', $3) as query),
own as (
    select e.entity_id, '' as document, 0 as n, ts_rank_cd(e.words, q.query, 1) * 2 as rank
    from entities e, q where e.tenant_id = $1 and e.type = any($2::text[]) and e.deleted_at is null and e.words @@ q.query
), told as (
    select distinct on (t.entity_id) t.entity_id, t.document_id as document, c.n, ts_rank_cd(c.words, q.query, 1) as rank
    from q, texts t
    join text_chunks c on c.tenant_id = t.tenant_id and c.document_id = t.document_id
    where t.tenant_id = $1 and t.entity_id is not null and t.deleted_at is null and c.words @@ q.query
    order by t.entity_id, 4 desc, t.document_id, c.n
), best as (
    select distinct on (b.entity_id) b.entity_id, b.document, b.n, b.rank
    from (select * from own union all select * from told) b order by b.entity_id, b.rank desc, b.document
), picked as (
    select e.entity_id, e.type, e.title, e.content, b.document, b.n, b.rank
    from best b join entities e on e.tenant_id = $1 and e.entity_id = b.entity_id
    where e.type = any($2::text[]) and e.deleted_at is null and ($4::text = '' or exists (
        select from workspaces w where w.tenant_id = $1 and w.workspace = $4 and w.entity_id = e.entity_id and w.removed_at is null))
    order by b.rank desc, e.entity_id collate "C" limit $5
)
select p.entity_id, p.type, p.title, p.rank::float8 as rank, p.document,
    coalesce(ts_headline('simple', c.body, q.query, {{headline}}), '') as snippet
from picked p cross join q left join text_chunks c on c.tenant_id = $1 and c.document_id = p.document and c.n = p.n
order by p.rank desc, p.entity_id collate "C"

-- fragment: headline
'StartSel=**, StopSel=**, MaxWords=40, MinWords=20'

-- name: RelationsPut
-- Skips relations to entities that do not exist; the caller compares the count.
insert into relations (tenant_id, from_id, name, to_id)
select $1, $2, r.name, e.entity_id
from unnest($3::text[], $4::text[]) as r(name, to_id)
join entities e on e.tenant_id = $1 and e.entity_id = r.to_id and e.deleted_at is null
where exists (select from entities f where f.tenant_id = $1 and f.entity_id = $2 and f.deleted_at is null)
on conflict (tenant_id, from_id, name, to_id) do update set removed_at = null

-- name: RelationsDrop
-- Removes the relations with the given names, except those listed in $4 and $5.
update relations r set removed_at = clock_timestamp()
where r.tenant_id = $1 and r.from_id = $2 and r.name = any($3::text[]) and r.removed_at is null
    and not exists (select from unnest($4::text[], $5::text[]) as s(name, to_id) where s.name = r.name and s.to_id = r.to_id)

-- name: RelationsOf
-- The relations of an entity in both directions, with the entity at the other end.
select r.name, r.from_id = $2 as outgoing, e.entity_id, e.type, e.title
from relations r
join entities e on e.tenant_id = $1 and e.entity_id = case when r.from_id = $2 then r.to_id else r.from_id end and e.deleted_at is null
where r.tenant_id = $1 and (r.from_id = $2 or r.to_id = $2) and r.removed_at is null and e.type = any($3::text[])
order by r.from_id = $2 desc, r.name collate "C", e.entity_id collate "C" limit $4

-- name: EntityNeighbours
-- The entities that are one relation away, in either direction.
select n.entity_id from entities n
where n.tenant_id = $1 and n.deleted_at is null and n.entity_id in (
    select r.to_id from relations r where r.tenant_id = $1 and r.from_id = any($2::text[]) and r.removed_at is null
    union all
    select r.from_id from relations r where r.tenant_id = $1 and r.to_id = any($2::text[]) and r.removed_at is null)
    and ($3::text = '' or exists (
        select from workspaces w where w.tenant_id = $1 and w.workspace = $3 and w.entity_id = n.entity_id and w.removed_at is null))
order by n.entity_id collate "C"

-- name: EntitiesBrief
-- Entities without their contents, in the order of the given ids. If types are given, only entities of those types.
select e.entity_id, e.type, e.title from unnest($2::text[]) with ordinality as q(entity_id, n)
join entities e on e.tenant_id = $1 and e.entity_id = q.entity_id and e.deleted_at is null
where cardinality($3::text[]) = 0 or e.type = any($3)
order by q.n limit $4

-- name: WorkspaceAdd
insert into workspaces (tenant_id, workspace, entity_id)
select $1, w.name, e.entity_id from unnest($2::text[]) as w(name)
cross join entities e where e.tenant_id = $1 and e.entity_id = any($3::text[]) and e.deleted_at is null
on conflict (tenant_id, workspace, entity_id) do update set removed_at = null

-- name: WorkspaceHolds
select w.entity_id from workspaces w
join entities e on e.tenant_id = w.tenant_id and e.entity_id = w.entity_id and e.deleted_at is null
where w.tenant_id = $1 and w.workspace = $2 and w.entity_id = any($3::text[]) and w.removed_at is null

-- name: WorkspaceExists
select exists (select from workspaces w where w.tenant_id = $1 and w.workspace = $2)

-- fragment: text
t.tenant_id as tenant, t.document_id as id, coalesce(t.entity_id, '') as entity_id, t.title, t.media_type, t.body, t.created_at, t.updated_at

-- name: TextPut
insert into texts as t (tenant_id, document_id, entity_id, title, media_type, body)
select $1, $2, nullif($3::text, ''), $4, $5, $6
where $3 = '' or exists (select from entities e where e.tenant_id = $1 and e.entity_id = $3 and e.deleted_at is null)
on conflict (tenant_id, document_id) do update
    set entity_id = excluded.entity_id, title = excluded.title, media_type = excluded.media_type, body = excluded.body,
        updated_at = clock_timestamp(), deleted_at = null
returning {{text}}

-- name: TextChunksPut
insert into text_chunks (tenant_id, document_id, n, body)
select $1, t.document_id, c.n - 1, c.body from texts t, unnest($3::text[]) with ordinality as c(body, n)
where t.tenant_id = $1 and t.document_id = $2
on conflict (tenant_id, document_id, n) do update set body = excluded.body

-- name: TextChunksEmpty
update text_chunks c set body = '' where c.tenant_id = $1 and c.document_id = $2 and c.n >= $3 and c.body <> ''

-- name: TextGet
select {{text}} from texts t where t.tenant_id = $1 and t.document_id = $2 and t.deleted_at is null
    and (t.entity_id is null or exists (select from entities e where e.tenant_id = $1 and e.entity_id = t.entity_id and e.deleted_at is null))

-- name: TextInfos
select t.document_id as id, t.title, t.media_type, octet_length(t.body) as bytes from texts t
where t.tenant_id = $1 and t.entity_id = $2 and t.deleted_at is null order by t.created_at, t.document_id limit $3

-- name: TextsSearched
with q as (select websearch_to_tsquery('simple', $2) as query),
picked as (
    select t.document_id, coalesce(t.entity_id, '') as entity_id, t.title, c.n as chunk, c.body, ts_rank_cd(c.words, q.query, 1) as rank
    from q, texts t join text_chunks c on c.tenant_id = t.tenant_id and c.document_id = t.document_id
    where t.tenant_id = $1 and t.deleted_at is null and c.words @@ q.query
        and ($3::text[] is null or t.entity_id = any($3))
        and (t.entity_id is null or exists (
            select from entities e where e.tenant_id = $1 and e.entity_id = t.entity_id and e.deleted_at is null))
    order by rank desc, t.document_id collate "C", c.n limit $4
)
select p.document_id, p.entity_id, p.title, p.chunk, p.body, p.rank::float8 as rank,
    ts_headline('simple', p.body, q.query, {{headline}}) as snippet
from picked p cross join q order by p.rank desc, p.document_id collate "C", p.chunk

-- name: EntityTasksPut
insert into entity_tasks (tenant_id, entity_id, task, ended)
select $1, $2, q.task, q.ended from unnest($3::text[], $4::bytea[]) as q(task, ended)
on conflict (tenant_id, entity_id, task) do update set ended = excluded.ended, updated_at = clock_timestamp()

-- name: EntityProgress
-- An entity and how its tasks ended, in one snapshot.
select {{entity}},
    array(select k.task from entity_tasks k where k.tenant_id = $1 and k.entity_id = $2 order by k.task) as tasks,
    array(select k.ended from entity_tasks k where k.tenant_id = $1 and k.entity_id = $2 order by k.task) as ended
from entities e where e.tenant_id = $1 and e.entity_id = $2 and e.deleted_at is null

-- name: SourceEntities
select e.entity_id as id, e.type, encode(sha256(convert_to(json_build_array(e.title, e.content)::text, 'UTF8')), 'hex') as hash
from entities e where e.tenant_id = $1 and e.entity_id = any($2::text[]) and e.deleted_at is null
order by e.entity_id collate "C"

-- name: SourceTexts
-- Returns bodies as long as their total is at most $3 bytes.
select t.document_id as id, e.entity_id, encode(sha256(convert_to(json_build_array(t.title, t.body)::text, 'UTF8')), 'hex') as hash,
    case when sum(octet_length(t.body)) over (order by t.created_at, t.document_id collate "C") <= $3::bigint then t.body end as body
from texts t
join entities e on e.tenant_id = t.tenant_id and e.entity_id = t.entity_id and e.deleted_at is null
where t.tenant_id = $1 and t.entity_id = any($2::text[]) and t.deleted_at is null
order by t.created_at, t.document_id collate "C"
