-- Decisions with the tokens that prove them, so that workers can verify the signatures again when a call begins.

-- +goose Up
create table signed_decisions (
    tenant_id  text not null,
    session_id text not null,
    call_id    text not null,
    n          bigint generated always as identity,
    token      text not null check (token <> ''),
    decision   json not null, -- what the token is about
    digest     text not null, -- the digest of the call that was shown
    shown      json not null, -- what that digest is of
    created_at timestamptz not null default clock_timestamp(),
    primary key (tenant_id, session_id, call_id, n),
    foreign key (tenant_id, session_id, call_id) references calls on delete cascade
);
select jig_isolate('signed_decisions');

-- +goose Down
drop table signed_decisions;
