-- Whether an id is that of another tenant's artifact or session, for the audit: the one who asks is told the same in either case.

-- +goose Up
create index artifacts_id on artifacts (artifact_id); -- for jig_value_elsewhere
create index sessions_id on sessions (session_id); -- for jig_value_elsewhere
create policy sweep_read on artifacts for select to current_role using (current_setting('jig.sweep', true) = 'on');
-- +goose StatementBegin
create function jig_value_elsewhere(artifact text, session text) returns boolean
language plpgsql volatile security definer
set search_path from current
as $$
declare
    tenant text := nullif(current_setting('jig.tenant', true), '');
    found_elsewhere boolean;
begin
    if tenant is null then
        raise exception 'name the tenant that asks' using errcode = '42501';
    end if;
    perform set_config('jig.sweep', 'on', true);
    select exists (select from artifacts a where a.artifact_id = artifact and a.tenant_id <> tenant)
        or exists (select from sessions s where s.session_id = session and s.tenant_id <> tenant) into found_elsewhere;
    perform set_config('jig.sweep', '', true);
    return found_elsewhere;
end $$;
-- +goose StatementEnd
revoke all on function jig_value_elsewhere(text, text) from public;

-- +goose Down
drop function jig_value_elsewhere(text, text);
drop policy sweep_read on artifacts;
drop index sessions_id;
drop index artifacts_id;
