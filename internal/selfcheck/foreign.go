package selfcheck

import (
	"context"
	"net/http"
	"strings"
)

// foreign returns the checks of an operation with each id of the owner, by the other tenant.
func (r *run) foreign(op *Operation) []func(ctx context.Context) error {
	var list []func(ctx context.Context) error
	for _, kind := range r.kinds(op) {
		if len(r.ids[kind]) == 0 {
			r.notTested(op.ID + ": the owner has no " + kind + " of its own")
		}
		for _, id := range r.ids[kind] {
			list = append(list, func(ctx context.Context) error { return r.compare(ctx, op, kind, id) })
		}
	}
	return list
}

// refreshes is how often two requests whose costs differ are made again: the server reads the settings of tenants anew each second, and the
// request that meets this pays for it.
const refreshes = 3

// compare asks for an id of the owner and for one that does not exist, as the other tenant.
func (r *run) compare(ctx context.Context, op *Operation, kind, id string) error {
	ask := func(which string) (answer, int64, error) {
		var sent []string
		request := r.request(op, kind, func(k string) string {
			id := which
			if k != kind {
				id = first(r.ids[k])
			}
			sent = append(sent, id)
			return id
		})
		before := r.cost()
		got, err := r.do(ctx, request, "Bearer "+r.Other)
		if !strings.Contains(op.Path, "{") { // an operation on something in its path has no reason to repeat other ids
			for _, id := range sent {
				got = got.without(id)
			}
		}
		return got, r.cost() - before, err
	}
	unknown, expected, err := ask(changed(id))
	if err != nil {
		return err
	}
	foreign, cost, err := ask(id)
	if err != nil {
		return err
	}
	if difference := unknown.differs(foreign); difference != "" {
		r.found("%s: %s %s of another tenant is not answered like an unknown one: %s", op.ID, kind, id, difference)
	}
	later := op.Record == "call" && unknown.status == http.StatusAccepted // the result of the call says that there is no such thing
	if strings.Contains(op.Path, "{"+kind+"}") && !later && unknown.status < http.StatusBadRequest {
		r.found("%s: an unknown %s is answered %d: %s", op.ID, kind, unknown.status, unknown.said())
	}
	for range refreshes {
		if cost == expected {
			break
		}
		_, again, err := ask(changed(id))
		if err != nil {
			return err
		}
		_, repeated, err := ask(id)
		if err != nil {
			return err
		}
		expected, cost = min(expected, again), min(cost, repeated)
	}
	if cost != expected {
		r.found("%s: %s of another tenant costs %d queries, and an unknown one %d", op.ID, kind, cost, expected)
	}
	r.leaks(op, kind, foreign)
	return nil
}
