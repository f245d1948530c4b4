package shop

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/tools"
)

// refundInput is the input of a call. The tags become the tool's schema: models read it, and every call is checked against it.
type refundInput struct {
	Order  string `json:"order" jsonschema:"number of the order, e.g. 1042" pattern:"^[0-9]{1,12}$"`
	Cents  int    `json:"cents" jsonschema:"amount to pay back, in cents" minimum:"1" maximum:"1000000000"`
	Reason string `json:"reason" jsonschema:"why, in a few words" maxLength:"200"`
}

// refundOutput is the result of a call.
type refundOutput struct {
	Number int `json:"number" jsonschema:"number of the refund among those of the order"`
	Left   int `json:"left" jsonschema:"what is left of the order, in cents"`
}

// Summary is the line that people and models read first.
func (o refundOutput) Summary() string {
	return fmt.Sprintf("refund %d is paid; %s of the order is left", o.Number, money(o.Left))
}

// RefundTool returns the tool orders.refund. It writes, so its calls wait for a person unless a policy says that they run.
func RefundTool(s *Shop) tools.Tool {
	return tools.New(jig.Tool{
		Name:        "orders.refund",
		Description: "Pays a part of an order back to the customer. Call it once for each refund.",
		Permission:  jig.PermissionWrite,
		Idempotent:  true,                                           // a call that is repeated with the same key finds its own refund
		Labels:      &jig.Labels{Reads: []string{jig.ReadsPrivate}}, // nobody outside the shop writes its results
	}, s.refund, tools.WithPreview(s.preview))
}

// refund pays. jig calls it after the approval, and again with the same idempotency key if the worker dies before the result is stored.
func (s *Shop) refund(_ context.Context, inv jig.Invocation, in refundInput) (refundOutput, error) {
	_, earlier, left, err := s.find(in.Order)
	if err != nil {
		return refundOutput{}, err
	}
	for i, r := range earlier {
		if r.Key == inv.IdempotencyKey {
			return refundOutput{Number: i + 1, Left: left}, nil
		}
	}
	if inv.Precondition != "" && inv.Precondition != state(earlier) {
		return refundOutput{}, changed(in.Order)
	}
	if in.Cents > left {
		return refundOutput{}, tooMuch(in.Order, left)
	}
	number := len(earlier) + 1
	err = s.add(in.Order, number, refund{Cents: in.Cents, Reason: in.Reason, Key: inv.IdempotencyKey})
	if errors.Is(err, fs.ErrExist) {
		return refundOutput{}, changed(in.Order)
	}
	// Any other error leaves open whether the money was paid. jig then tries again with the same key, and at last asks a person.
	return refundOutput{Number: number, Left: left - in.Cents}, err
}

// preview shows what a call will change before anybody approves it. It may only read.
func (s *Shop) preview(_ context.Context, _ jig.Invocation, in refundInput) (jig.Preview, error) {
	o, earlier, left, err := s.find(in.Order)
	if err != nil {
		return jig.Preview{}, err // people see that there is no preview, and why
	}
	if in.Cents > left {
		return jig.Preview{}, tooMuch(in.Order, left)
	}
	return jig.Preview{
		Title:        fmt.Sprintf("Pays %s of order %s back to %s", money(in.Cents), in.Order, o.Customer),
		Changes:      []string{fmt.Sprintf("left of %s: %s -> %s", money(o.Cents), money(left), money(left-in.Cents))},
		Precondition: state(earlier), // refund compares it, so exactly what is shown happens, or nothing
	}, nil
}

// state names what a preview was computed from.
func state(refunds []refund) string { return fmt.Sprintf("an order with %d refunds", len(refunds)) }

// tooMuch is the error for a refund of more than is left of an order.
func tooMuch(id string, left int) error {
	return jig.Errorf(jig.CodeInvalidInput, "only %s of order %s is left", money(left), id).WithField("/cents")
}

// changed is the error for a refund that came second. Its code promises that nothing happened.
func changed(id string) error {
	return jig.Errorf(jig.CodeConflict, "another refund of order %s was paid in the meantime", id)
}

func money(cents int) string { return fmt.Sprintf("%d.%02d EUR", cents/100, cents%100) }
