-- What a worker found when it compared calls that wait for approval with what people are shown.

-- +goose Up

alter table approvals
    add column compared_at timestamptz, -- when the latest comparison began
    add column comparison json;         -- what it found; null until it ends

-- +goose Down
alter table approvals drop column compared_at, drop column comparison;
