-- +goose Up
-- Whoever changes the input of a call, or denies one with a reason, puts words into the session, too.
alter table askers drop constraint askers_by_check;
alter table askers add constraint askers_by_check check (by in ('started', 'triggered', 'message', 'event', 'answer', 'review'));

-- +goose Down
delete from askers where by = 'review';
alter table askers drop constraint askers_by_check;
alter table askers add constraint askers_by_check check (by in ('started', 'triggered', 'message', 'event', 'answer'));
