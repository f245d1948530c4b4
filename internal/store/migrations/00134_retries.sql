-- Retries by time.

-- +goose Up

alter table calls
    add column failed_at timestamptz, -- the first failure of the open call that may pass
    add column failures integer not null default 0 check (failures >= 0), -- the attempts that ended with such a failure
    add column tried boolean not null default false; -- an attempt began before the ledger knew of it, and has not reported

-- +goose Down
alter table calls drop column failed_at, drop column failures, drop column tried;
