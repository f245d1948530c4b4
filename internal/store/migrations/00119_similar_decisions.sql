-- Earlier decisions about calls of a tool, which an approval shows beside the call that waits.

-- +goose Up
create index approvals_of_tool on approvals (tenant_id, tool, decided_at desc, id desc)
    where kind = 'approval' and answer in ('approve', 'deny');

-- +goose Down
drop index approvals_of_tool;
