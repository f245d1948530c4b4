-- name: TenantSet
select set_config('jig.tenant', $1, true)

-- name: ReadOnlySet
select set_config('transaction_read_only', 'on', true)

-- name: RoleCheck
-- The current role, whether the tables exist, and whether the role owns them.
select current_user::text as name, r.rolsuper as super, r.rolbypassrls as bypass,
    to_regclass('jig_schema_version') is not null as migrated,
    coalesce((select pg_has_role(c.relowner, 'usage') from pg_class c where c.oid = to_regclass('sessions')), false) as owner,
    coalesce((select has_table_privilege(c.oid, 'select') from pg_class c where c.oid = to_regclass('jig_schema_version')), false) as granted,
    has_database_privilege(current_database(), 'temporary') as temporary,
    exists (select from unnest(current_schemas(false)) s where has_schema_privilege(s, 'create')) as creates
from pg_roles r where r.rolname = current_user

-- name: SchemaVersions
-- The lowest and the highest number of the applied migrations, or 0. The row with the number 0 is goose's own.
select coalesce(min(v.version_id) filter (where v.version_id > 0), 0) as lowest, coalesce(max(v.version_id), 0) as latest
from jig_schema_version v where v.is_applied

-- name: Installation
select i.id, i.text_key from installation i

-- name: LiveSessions
select q.tenant_id as tenant, q.session_id as id, q.status, q.updated_at from jig_live_sessions($1) q

-- name: SessionsAfter
select q.tenant_id, q.session_id from jig_sessions_after($1, $2, $3) q

-- name: Prune
select jig_prune($1)

-- name: Erase
select jig_erase()

-- name: ExportSessions
select to_json(t)::text from sessions t where t.tenant_id = $1 order by t.session_id

-- name: ExportRetiredSessions
select to_json(t)::text from retired_sessions t where t.tenant_id = $1 order by t.id_hash

-- name: ExportMessages
select to_json(t)::text from messages t where t.tenant_id = $1 order by t.session_id, t.n

-- name: ExportAskers
select to_json(t)::text from askers t where t.tenant_id = $1 order by t.session_id, t.pass, t.principal, t.by, t.claimed, t.maker

-- name: ExportTurns
select to_json(t)::text from turns t where t.tenant_id = $1 order by t.session_id, t.pass

-- name: ExportPassEnds
select to_json(t)::text from pass_ends t where t.tenant_id = $1 order by t.session_id, t.pass

-- name: ExportCalls
select to_json(t)::text from calls t where t.tenant_id = $1
order by t.session_id, t.pass, t.ordinal, t.created_at, t.nth, t.call_id

-- name: ExportSettledCalls
select to_json(t)::text from settled_calls t where t.tenant_id = $1 order by t.session_id, t.call_id

-- name: ExportFrames
select to_json(t)::text from frames t where t.tenant_id = $1 order by t.session_id, t.created_at, t.call_id

-- name: ExportFrameValues
select to_json(t)::text from frame_values t where t.tenant_id = $1 order by t.session_id, t.frame, t.path

-- name: ExportReceived
select to_json(t)::text from received t where t.tenant_id = $1 order by t.session_id, t.n

-- name: ExportReceivedConsumed
select to_json(t)::text from received_consumed t where t.tenant_id = $1 order by t.session_id, t.frame, t.n

-- name: ExportApprovals
select to_json(t)::text from approvals t where t.tenant_id = $1 order by t.id

-- name: ExportDecisions
select to_json(t)::text from decisions t where t.tenant_id = $1 order by t.session_id, t.created_at, t.key

-- name: ExportGrants
select to_json(t)::text from grants t where t.tenant_id = $1 order by t.created_at, t.grant_id

-- name: ExportPauses
select to_json(t)::text from pauses t where t.tenant_id = $1 order by t.scope, t.target

-- name: ExportUsedTokens
select to_json(t)::text from used_tokens t where t.tenant_id = $1 order by t.token

-- name: ExportNotices
select to_json(t)::text from notices t where t.tenant_id = $1 order by t.created_at, t.id

-- name: ExportNoticeDeliveries
select to_json(t)::text from notice_deliveries t where t.tenant_id = $1 order by t.notice_id, t.target

-- name: ExportAudit
select to_json(t)::text from audit t where t.tenant_id = $1 order by t.n

-- name: ExportEvents
select to_json(t)::text from events t where t.tenant_id = $1 order by t.session_id, t.seq

-- name: ExportArtifacts
select to_json(t)::text from artifacts t where t.tenant_id = $1 order by t.artifact_id

-- name: ExportArtifactChunks
select to_json(t)::text from artifact_chunks t where t.tenant_id = $1 order by t.artifact_id, t.at

-- name: ExportDocuments
select to_json(t)::text from documents t where t.tenant_id = $1 order by t.kind, t.name, t.created_at

-- name: ExportBundles
select to_json(t)::text from bundles t where t.tenant_id = $1 order by t.name

-- name: ExportEntities
select (to_jsonb(t) - 'words')::text from entities t where t.tenant_id = $1 order by t.entity_id

-- name: ExportEntityTasks
select to_json(t)::text from entity_tasks t where t.tenant_id = $1 order by t.entity_id, t.task

-- name: ExportRelations
select to_json(t)::text from relations t where t.tenant_id = $1 order by t.from_id, t.name, t.to_id

-- name: ExportWorkspaces
select to_json(t)::text from workspaces t where t.tenant_id = $1 order by t.workspace, t.entity_id

-- name: ExportTexts
select to_json(t)::text from texts t where t.tenant_id = $1 order by t.document_id

-- name: ExportTextChunks
select (to_jsonb(t) - 'words')::text from text_chunks t where t.tenant_id = $1 order by t.document_id, t.n
