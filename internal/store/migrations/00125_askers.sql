-- On whose word calls rest.

-- +goose Up

-- Those whose words a session works with: its principal, those of the session that started it, and the authors of messages, events and answers.
-- Calls of later passes than pass rest on them; words that were there at the start have pass -1.
create table askers (
    tenant_id  text not null,
    session_id text not null,
    principal  text not null check (principal <> ''),
    claimed    boolean not null default false,
    by         text not null check (by in ('started', 'triggered', 'message', 'event', 'answer')),
    maker      text not null default '', -- who made the asker's credential
    pass       integer not null,
    primary key (tenant_id, session_id, principal, claimed, by, maker),
    foreign key (tenant_id, session_id) references sessions on delete cascade
);
select jig_isolate('askers');

alter table approvals add column askers json;

-- The makers of the credentials of those who gave the grant, by giver.
alter table grants add column makers json;

-- +goose Down
alter table grants drop column makers;
alter table approvals drop column askers;
drop table askers;
