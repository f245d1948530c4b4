// Package shop has the project's tools. They are kept apart from the program, so that testing them does not build a whole worker.
package shop

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/jig-run/jig"
)

// Shop stands in for the system that your tools work with. It is a folder of files: 1042.json is an order, and 1042.refund-1.json its first
// refund.
//
// Reach a system over HTTP with an http.Client whose Transport is tools.Transport(nil): jig then knows that a call did nothing if no connection
// was established, and repeats it when the system is back.
type Shop struct{ files *os.Root }

// order is a purchase.
type order struct {
	Customer string `json:"customer"`
	Cents    int    `json:"cents"`
}

// refund is money that was paid back. Key is the idempotency key of the call that paid it.
type refund struct {
	Cents  int    `json:"cents"`
	Reason string `json:"reason"`
	Key    string `json:"key"`
}

// Open opens the shop in a folder.
func Open(dir string) (*Shop, error) {
	files, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("the orders are in the project's folder, in which the worker must be started: %w", err)
	}
	return &Shop{files: files}, nil
}

// Close closes the shop.
func (s *Shop) Close() error { return s.files.Close() }

// find returns an order, its refunds, and how much of it is left. It only reads, so its errors say that nothing happened.
func (s *Shop) find(id string) (o order, refunds []refund, left int, err error) {
	err = s.read(id+".json", &o)
	if errors.Is(err, fs.ErrNotExist) {
		return o, nil, 0, jig.Errorf(jig.CodeNotFound, "there is no order %s", id).WithField("/order")
	}
	for left = o.Cents; err == nil; {
		var r refund
		if err = s.read(refundFile(id, len(refunds)+1), &r); err == nil {
			refunds, left = append(refunds, r), left-r.Cents
		}
	}
	if errors.Is(err, fs.ErrNotExist) {
		return o, refunds, left, nil
	}
	return o, nil, 0, &jig.Error{Code: jig.CodeUnavailable, Message: "the order cannot be read: " + err.Error(), NotExecuted: true, Cause: err}
}

// add stores a refund completely or not at all. If the order has a refund of that number already, the error is fs.ErrExist: of two
// programs that try at the same time, one wins.
func (s *Shop) add(id string, number int, r refund) error {
	content, err := json.Marshal(r)
	if err != nil {
		return err
	}
	draft := rand.Text() + ".draft"
	if err := s.files.WriteFile(draft, content, 0o600); err != nil {
		return err
	}
	return errors.Join(s.files.Link(draft, refundFile(id, number)), s.files.Remove(draft))
}

func (s *Shop) read(name string, v any) error {
	content, err := s.files.ReadFile(name)
	if err != nil {
		return err
	}
	return json.Unmarshal(content, v)
}

func refundFile(id string, number int) string { return fmt.Sprintf("%s.refund-%d.json", id, number) }
