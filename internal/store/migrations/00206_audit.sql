-- The audit: who decided what, in one chain of hashes for each tenant. A row cannot be changed, moved or removed without breaking the
-- chain from there on.

-- +goose Up
-- +goose StatementBegin

-- The end of each chain. Locking its row allows a transaction to append to the chain. The row changes with every entry; the fill factor
-- leaves room for HOT updates.
create table audit_heads (
    tenant_id text primary key references tenants on delete cascade,
    n         bigint not null check (n >= 0),
    hash      bytea not null check (length(hash) = 32)
) with (fillfactor = 10);
select jig_isolate('audit_heads');

-- The table has no foreign key to sessions, because the record of a decision outlives its session.
create table audit (
    tenant_id  text not null references audit_heads on delete cascade,
    n          bigint not null check (n > 0),
    prev       bytea not null check (length(prev) = 32),
    hash       bytea not null check (length(hash) = 32),
    entry      text not null check (octet_length(entry) <= 131072),
    at         timestamptz not null,
    kind       text not null,
    session_id text not null,
    call_id    text not null,
    -- For lists: who acted, the tool and the agent of the call, and how it was decided; '' if the entry has none.
    principal  text not null,
    tool       text not null,
    agent      text not null,
    outcome    text not null check (outcome in ('', 'approved', 'granted', 'denied', 'expired', 'withdrawn', 'answered', 'reconciled')),
    in_part    boolean not null, -- the approval did not suffice: others had to approve too
    primary key (tenant_id, n)
);
create index audit_of_session on audit (tenant_id, session_id, n) where session_id <> '';
create index audit_at on audit (tenant_id, at);
create index audit_of_principal on audit (tenant_id, principal, n) where principal <> '';
create index audit_of_tool on audit (tenant_id, tool collate "C", n) where tool <> '';
create index audit_of_agent on audit (tenant_id, agent, n) where agent <> '';
create index audit_of_outcome on audit (tenant_id, outcome, n) where outcome <> '';
select jig_isolate('audit');

-- Appends an entry to the chain of the current tenant and returns its number. The chain stays locked until the transaction ends.
create function jig_audit(entry text, kind text, session text, call text, principal text default '', tool text default '', agent text default '',
    outcome text default '', in_part boolean default false) returns bigint
language plpgsql volatile security definer
set search_path from current
as $$
#variable_conflict use_variable
declare
    tenant text := nullif(current_setting('jig.tenant', true), '');
    head audit_heads;
    link bytea;
begin
    if tenant is null or tenant = '_global' then
        raise exception 'name the tenant whose audit it is' using errcode = '42501';
    end if;
    select * into head from audit_heads h where h.tenant_id = tenant for no key update;
    if not found then
        insert into tenants (tenant_id) values (tenant) on conflict do nothing;
        insert into audit_heads (tenant_id, n, hash) values (tenant, 0, sha256(convert_to('jig audit ' || tenant, 'UTF8')))
        on conflict do nothing;
        select * into head from audit_heads h where h.tenant_id = tenant for no key update;
    end if;
    link := sha256(head.hash || int8send(head.n + 1) || convert_to(entry, 'UTF8'));
    insert into audit (tenant_id, n, prev, hash, entry, at, kind, session_id, call_id, principal, tool, agent, outcome, in_part)
    values (tenant, head.n + 1, head.hash, link, entry, clock_timestamp(), kind, session, call, principal, tool, agent, outcome, in_part);
    update audit_heads h set n = head.n + 1, hash = link where h.tenant_id = tenant;
    return head.n + 1;
end $$;
revoke all on function jig_audit(text, text, text, text, text, text, text, text, boolean) from public;

-- +goose StatementEnd
