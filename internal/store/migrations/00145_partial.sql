-- Lists of what ended in part: sessions by their reason, and entities by the tasks that failed.

-- +goose Up
create index sessions_reason on sessions (tenant_id, reason, created_at, session_id) where reason <> '';
-- The outcome of a task begins with its status. It is compared as bytes, because PostgreSQL cannot read members of JSON that has NUL or half of a
-- surrogate pair in a value.
alter table entity_tasks add column failed boolean not null generated always as (
    substring(ended from 1 for 18) = '{"status":"failed"'::bytea or substring(ended from 1 for 20) = '{"status":"canceled"'::bytea
) stored;
create index entity_tasks_failed on entity_tasks (tenant_id, entity_id, task) where failed;

-- +goose Down
drop index entity_tasks_failed;
alter table entity_tasks drop column failed;
drop index sessions_reason;
