-- Sessions that are going on, for the command that marks calls after a restore from a backup.

-- +goose Up
-- Returns the sessions of all tenants that have not ended, in the order of their keys, after the key given.
-- +goose StatementBegin
create function jig_sessions_after(tenant text, session text, max_rows integer)
returns table (tenant_id text, session_id text)
language plpgsql volatile security definer
set search_path from current
as $$
#variable_conflict use_column
begin
    perform set_config('jig.sweep', 'on', true);
    return query select s.tenant_id, s.session_id from sessions s
    where s.status in ('working', 'input_required') and (s.tenant_id, s.session_id) > (tenant, session)
    order by s.tenant_id, s.session_id
    limit max_rows;
    perform set_config('jig.sweep', '', true);
end $$;
-- +goose StatementEnd
revoke all on function jig_sessions_after(text, text, integer) from public;

-- +goose Down
drop function jig_sessions_after(text, text, integer);
