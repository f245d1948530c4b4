-- Compositions under way: where each stands, the values it keeps, the calls it made, and the events that sessions were sent.

-- +goose Up
alter table calls
    add column frame text not null default '', -- the call whose composition made this one
    add column nth integer not null default 0, -- its place among those that were admitted with it
    add column open_frame text generated always as (case when frame <> '' and result is null then frame end) stored,
    add constraint calls_named_after_frame check (frame = '' or starts_with(call_id, frame || '/'));
drop index calls_order;
create index calls_order on calls (tenant_id, session_id, frame, pass, ordinal, created_at, nth);
-- Over a column of its own, which is null in the calls of passes: an index over result, or status, would end HOT updates of all.
create index calls_open_of_frame on calls (tenant_id, session_id, open_frame, created_at, nth) where open_frame is not null;

create table frames (
    tenant_id       text not null,
    session_id      text not null,
    call_id         text not null,
    kind            text not null,
    name            text not null,
    version         text not null,
    fence           integer not null default 0 check (fence >= 0),
    state           bytea,
    revision        bigint not null default 0 check (revision >= 0),
    done            boolean not null default false,
    result          bytea,
    result_artifact text not null default '',
    received_before bigint not null default 0, -- the last event that the session had received when the composition began
    created_at      timestamptz not null default now(),
    updated_at      timestamptz not null default now(),
    primary key (tenant_id, session_id, call_id),
    foreign key (tenant_id, session_id, call_id) references calls on delete cascade,
    constraint frames_done_has_result check (done = (result is not null))
) with (fillfactor = 60);
alter table frames alter column state set storage external;
alter table frames alter column result set storage external;

create table frame_values (
    tenant_id  text not null,
    session_id text not null,
    frame      text not null,
    path       text not null,
    value      bytea,
    artifact   text,
    primary key (tenant_id, session_id, frame, path),
    foreign key (tenant_id, session_id, frame) references frames on delete cascade,
    check ((value is null) <> (artifact is null))
);
alter table frame_values alter column value set storage external;

create table received (
    tenant_id  text not null,
    session_id text not null,
    n          bigint not null check (n > 0),
    key        text not null check (key <> ''),
    name       text not null check (name <> ''),
    data       json,
    by         text not null default '',
    at         timestamptz not null,
    primary key (tenant_id, session_id, n),
    unique (tenant_id, session_id, key),
    foreign key (tenant_id, session_id) references sessions on delete cascade
);

-- Which compositions are through with which events.
create table received_consumed (
    tenant_id  text not null,
    session_id text not null,
    frame      text not null,
    n          bigint not null,
    primary key (tenant_id, session_id, frame, n),
    foreign key (tenant_id, session_id, frame) references frames on delete cascade
);

-- +goose StatementBegin
do $$
declare name text;
begin
    foreach name in array array['frames', 'frame_values', 'received', 'received_consumed'] loop
        execute format('alter table %I enable row level security', name);
        execute format('alter table %I force row level security', name);
        execute format($p$create policy tenant on %I
            using (tenant_id = nullif(current_setting('jig.tenant', true), ''))
            with check (tenant_id = nullif(current_setting('jig.tenant', true), '') and tenant_id <> '_global')$p$, name);
    end loop;
end $$;
-- +goose StatementEnd

-- +goose Down
drop table received_consumed, received, frame_values, frames;
drop index calls_open_of_frame;
drop index calls_order;
create index calls_order on calls (tenant_id, session_id, pass, ordinal, call_id);
alter table calls drop constraint calls_named_after_frame, drop column open_frame, drop column nth, drop column frame;
