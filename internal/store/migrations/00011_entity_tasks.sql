-- How the tasks that fill entities ended.

-- +goose Up
-- The latest end of each task of an entity: the next extraction of it reads them.
create table entity_tasks (
    tenant_id  text not null,
    entity_id  text not null,
    task       text not null check (task <> ''),
    ended      bytea not null, -- JSON
    updated_at timestamptz not null default clock_timestamp(),
    primary key (tenant_id, entity_id, task),
    foreign key (tenant_id, entity_id) references entities on delete cascade
);
alter table entity_tasks enable row level security;
alter table entity_tasks force row level security;
create policy tenant on entity_tasks
    using (tenant_id = nullif(current_setting('jig.tenant', true), ''))
    with check (tenant_id = nullif(current_setting('jig.tenant', true), '') and tenant_id <> '_global');

-- +goose Down
drop table entity_tasks;
